import test from 'ava'
import fc from 'fast-check'
import { safeReturnTo } from '#src/login/safe-return-to.js'
import { anyText } from '../helpers/any-text.js'
import { returnPaths } from '../helpers/return-paths.js'

const accepted: Readonly<Record<string, readonly string[]>> = {
  'a path': [...returnPaths, '/', '/page/', '/a/b/c.html', '/?a=b', '/#part'],
  'a query': ['/page?next=/other&url=https://other.example/#part', '/page?next=/api/auth/logout'],
  'a query with what a path must not have': ['/page?a=//b&c=%2f%2fd&e=%0d%0a&f=..', '/page?#//evil.example'],
  'a character of URLs': ['/a:b@c', '/~user/file;version=1,2', "/it's", '/@name/~home/a;b=c,d/$!*()'],
  'a character that browsers do not encode': ['/viewer/{3D}|[1]', '/wiki/100%'],
  'dots that are no segment': ['/...', '/a..b'],
  'slashes inside': ['/x//y', '/a//evil.example', '/a%5Cb', '/a%2F'],
  'a path that resembles a route': ['/api/authors', '/api/other', '/api/authentication/auth', '/api/auth.html'],
  'the most characters': [`/${'x'.repeat(2047)}`, `/x?${'\\'.repeat(1022)}`]
}

// Characters that a URL cannot contain are percent-encoded, which changes the spelling but not the page.
const encoded: readonly (readonly [given: string, result: string])[] = [
  ['/my file.pdf', '/my%20file.pdf'],
  ['/page ', '/page%20'],
  ['/café?q=ü#é', '/caf%C3%A9?q=%C3%BC#%C3%A9'],
  ['/modelle/übersicht', '/modelle/%C3%BCbersicht'],
  ['/🏠/平面図.rvt', '/%F0%9F%8F%A0/%E5%B9%B3%E9%9D%A2%E5%9B%B3.rvt'],
  ['/x?q="a b"', '/x?q=%22a%20b%22'],
  ['/\u2044evil.example', '/%E2%81%84evil.example'],
  ['/\u00a0/evil.example', '/%C2%A0/evil.example'],
  ['/page\u2028', '/page%E2%80%A8']
]

const refused: Readonly<Record<string, readonly string[]>> = {
  nothing: [''],
  'a network path': ['//evil.example', '///evil.example', '//evil.example/%2e%2e', ' //evil.example'],
  'a network path with backslashes': ['/\\evil.example', '\\\\evil.example', '\\/evil.example'],
  'another address': ['https://evil.example/', 'https:/evil.example', 'https:evil.example', 'data:text/html,x'],
  'a script': ['javascript:alert(1)'],
  'this host': ['http://localhost:8080@evil.example/', 'http://localhost:8080/'],
  'a relative path': ['page', '?a=b', '#a', '\uff0f\uff0fevil.example'],
  'a control character': ['/\t/evil.example', '/\n/evil.example', '/\r/evil.example', '\t//evil.example', '/page\n'],
  'a control character after the path': ['/page\r\nSet-Cookie: a=b', '/x?\x7f', '/x#\n'],
  'an encoded control character': ['/%09/evil.example', '/%0a/evil.example', '/%0d/evil.example', '/%00/evil.example'],
  'other encoded control characters': ['/%7f/evil.example', '/%0d%0aSet-Cookie:%20a=b', '/a%25250ab'],
  'an encoded network path': ['/%2fevil.example', '/%2Fevil.example', '/%5cevil.example', '/%252fevil.example'],
  'a backslash': ['/a\\b', '/page\\..\\x'],
  'a lone surrogate': ['/\ud800'],
  'a dot segment': ['/..//evil.example', '/.//evil.example', '/a/../b', '/a/..', '/a/./b', '/a/..;x/b', '/a/..%3Fx'],
  'an encoded dot segment': ['/%2e%2e//evil.example', '/.%2e/evil', '/a%5C..%5Cb', '/a%2F..%2Fb'],
  'a dot segment that is encoded several times': ['/a/%25252e%25252e/b', '/a/%2525252e%2525252E/b'],
  'a route of this server': ['/api/auth', '/api/auth#a', '/api/auth/logout', '/api/auth/login?return_to=/'],
  'a route in another spelling': ['/api//auth/logout', '/API/Auth/logout', '/api;a/;b/auth;c/logout'],
  'a route that is encoded': ['/api%2Fauth%2Flogout', '/api%252Fauth%252Flogout', '/api%5Cauth/logout'],
  'a part of a route that is encoded': ['/api/auth%3Fx', '/api/%61uth/%6cogout'],
  'a route with spaces at its end': ['/api/auth ', '/api/auth%20%20', '/api/auth%2520'],
  'a route below the path of a deployment': ['/tools/viewer/api/auth/logout'],
  'too many characters': [`/${'x'.repeat(2048)}`, `/${'x'.repeat(2048)}?a#b`],
  'too many characters when encoded': [`/${'ü'.repeat(342)}`],
  'too many characters, and no path of this origin': [
    `//evil.example?${'x'.repeat(2048)}`,
    `/\\evil#${'x'.repeat(2048)}`
  ]
}

test('what is too long loses its fragment, then its query, and the caller learns of it', t => {
  const [path, query, fragment] = [`/${'p'.repeat(1000)}`, `?${'q'.repeat(1000)}`, `#${'f'.repeat(100)}`]
  for (const [given, expected] of [
    [path + query + fragment, path + query],
    [`${path}?${'ü'.repeat(200)}#f`, path],
    [`${path}#${'f'.repeat(2000)}?q`, path],
    [`/x?${'\\'.repeat(1023)}`, '/x'],
    [`/page?${'"'.repeat(700)}`, '/page'],
    [`/${'x'.repeat(2048)}`, '/']
  ] as const) {
    let calls = 0
    const isTooLong = () => calls++
    t.is(safeReturnTo(given, isTooLong), expected)
    t.is(calls, 1)
    t.is(safeReturnTo(expected, isTooLong), expected)
    t.is(calls, 1)
  }
})

test('every path, query and fragment of this origin is accepted unchanged', t => {
  for (const [what, values] of Object.entries(accepted)) {
    for (const value of values) t.is(safeReturnTo(value, t.fail), value, what)
  }
})

test('characters that a URL cannot contain are percent-encoded', t => {
  for (const [given, result] of encoded) t.is(safeReturnTo(given, t.fail), result)
})

test('a value that may lead to another site or to a route of this server is replaced by the start page', t => {
  for (const [what, values] of Object.entries(refused)) {
    for (const value of values) {
      let calls = 0
      t.is(
        safeReturnTo(value, () => calls++),
        '/',
        `${what}: ${value}`
      )
      t.is(calls, 1, what)
    }
  }
})

// Typical parts of attacks on redirects.
const pieces = fc.constantFrom(
  ...['/', '\\', '//', '..', '.', '@', ':', '?', '#', '%2f', '%5C', '%2e', '%09', '%0d%0a', '%00', '%25', '%E2%81%84'],
  ...['%252f', '%25252e', '2e', '2F', '/api', '/auth', 'api', 'auth', ';x', 'ü', '%3f', '%23', '"'],
  ...['\t', '\n', '\r', ' ', '\0', '\u2028', '\ufeff', '；', 'https:', 'javascript:', 'evil.example', 'localhost', 'a']
)
const attacks = fc.array(pieces, { maxLength: 10 }).map(parts => parts.join(''))
const anything = fc.oneof(
  attacks,
  attacks.map(text => `/${text}`),
  anyText({ maxLength: 100 }),
  fc.webUrl({ withFragments: true, withQueryParameters: true }),
  fc.webPath()
)

test('a URL parser resolves every accepted value to this origin and outside the routes of this server, also after up to three decodings', t => {
  const origins = ['https://app.example', 'http://localhost:8080', 'https://app.example:8443/base/api/auth/callback']
  fc.assert(
    fc.property(anything, value => {
      const accepted = safeReturnTo(value)
      if (accepted !== '/' && decodeOnce(accepted) !== decodeOnce(value)) return false
      if (!/^\/(?![/\\])[!#-~]*$/.test(accepted)) return false
      const [path = ''] = accepted.split(/[?#]/)
      const readings = [accepted, path]
      for (let decoding = 0; decoding < 3; decoding += 1) readings.push(decodeOnce(readings.at(-1) as string))
      return origins.every(base => readings.every(reading => isHarmless(reading, base)))
    }),
    { numRuns: 5000 }
  )
  t.pass()
})

function isHarmless(reading: string, base: string): boolean {
  const { origin, username, password, pathname } = new URL(reading, base)
  const merged = pathname.replace(/\/+/g, '/').toLowerCase()
  return origin === new URL(base).origin && username === '' && password === '' && !/\/api\/auth(\/|$)/.test(merged)
}

function decodeOnce(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, escapes => Buffer.from(escapes.replaceAll('%', ''), 'hex').toString())
}
