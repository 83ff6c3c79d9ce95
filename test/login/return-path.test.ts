import test from 'ava'
import fc from 'fast-check'
import { safeReturnTo } from '#src/login/return-path.js'
import { anyText } from '../helpers/any-text.js'
import { returnPaths } from '../helpers/return-paths.js'

const plain = [
  ...returnPaths,
  '/',
  '/page/',
  '/a/b/c.html',
  '/?a=b',
  '/#part',
  '/page?next=/other&url=https://other.example/#part',
  '/page?a=//b&c=%2f%2fd&e=%0d%0a&f=..',
  '/a:b@c',
  '/~user/file;version=1,2',
  '/...',
  '/a..b',
  '/viewer/{3D}|[1]',
  '/wiki/100%',
  '/x//y',
  '/a//evil.example',
  '/a%5Cb',
  '/a%2F',
  '/api/authors',
  '/api/other',
  '/api/authentication/auth',
  "/it's",
  '/@name/~home/a;b=c,d/$!*()',
  '/page?#//evil.example',
  '/api/auth.html',
  '/page?next=/api/auth/logout',
  `/${'x'.repeat(2047)}`,
  `/x?${'\\'.repeat(1022)}`
]

// Characters that a URL cannot contain are percent-encoded, which changes the spelling but not the page.
const encoded: readonly (readonly [given: string, accepted: string])[] = [
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

const doubtful: readonly (readonly [what: string, value: string | undefined])[] = [
  ['nothing', undefined],
  ['an empty value', ''],
  ['a network path', '//evil.example'],
  ['a network path with more slashes', '///evil.example'],
  ['slash backslash', '/\\evil.example'],
  ['two backslashes', '\\\\evil.example'],
  ['backslash slash', '\\/evil.example'],
  ['an encoded tab', '/%09/evil.example'],
  ['an encoded line feed', '/%0a/evil.example'],
  ['an encoded carriage return', '/%0d/evil.example'],
  ['an encoded NUL', '/%00/evil.example'],
  ['an encoded DEL', '/%7f/evil.example'],
  ['a tab', '/\t/evil.example'],
  ['a line feed', '/\n/evil.example'],
  ['a carriage return', '/\r/evil.example'],
  ['a header of its own', '/page\r\nSet-Cookie: a=b'],
  ['a trailing line feed', '/page\n'],
  ['a leading tab', '\t//evil.example'],
  ['a leading space', ' //evil.example'],
  ['quotation marks', `/page?${'"'.repeat(700)}`],
  ['too many backslashes', `/x?${'\\'.repeat(1023)}`],
  ['too many umlauts', `/${'ü'.repeat(342)}`],
  ['a DEL in the query', '/x?\x7f'],
  ['a line feed in the fragment', '/x#\n'],
  ['an encoded header', '/%0d%0aSet-Cookie:%20a=b'],
  ['a backslash and dots', '/page\\..\\x'],
  ['encoded dots after a network path', '//evil.example/%2e%2e'],
  ['an absolute address', 'https://evil.example/'],
  ['an absolute address with one slash', 'https:/evil.example'],
  ['an absolute address without slashes', 'https:evil.example'],
  ['our own host with userinfo', 'http://localhost:8080@evil.example/'],
  ['our own host', 'http://localhost:8080/'],
  ['a script', 'javascript:alert(1)'],
  ['a data address', 'data:text/html,x'],
  ['dots before a network path', '/..//evil.example'],
  ['a dot before a network path', '/.//evil.example'],
  ['an encoded slash', '/%2fevil.example'],
  ['an encoded slash in capitals', '/%2Fevil.example'],
  ['an encoded backslash', '/%5cevil.example'],
  ['encoded dots', '/%2e%2e//evil.example'],
  ['half encoded dots', '/.%2e/evil'],
  ['a doubly encoded slash', '/%252fevil.example'],
  ['parent folders', '/a/../b'],
  ['a parent folder at the end', '/a/..'],
  ['this folder', '/a/./b'],
  ['a relative path', 'page'],
  ['a query alone', '?a=b'],
  ['a fragment alone', '#a'],
  ['a full-width slash', '\uff0f\uff0fevil.example'],
  ['a lone surrogate', '/\ud800'],
  ['a backslash that is encoded in a dot segment', '/a%5C..%5Cb'],
  ['a slash that is encoded in a dot segment', '/a%2F..%2Fb'],
  ['dots that are encoded three times', '/a/%25252e%25252e/b'],
  ['dots that are encoded four times', '/a/%2525252e%2525252E/b'],
  ['a parameter of a dot segment', '/a/..;x/b'],
  ['a dot segment before an encoded query', '/a/..%3Fx'],
  ['a control character that is encoded three times', '/a%25250ab'],
  ['a backslash in the path', '/a\\b'],
  ['our logout route', '/api/auth/logout'],
  ['our logout route with two slashes', '/api//auth/logout'],
  ['our logout route with encoded slashes', '/api%2Fauth%2Flogout'],
  ['our logout route with slashes that are encoded twice', '/api%252Fauth%252Flogout'],
  ['our logout route with an encoded backslash', '/api%5Cauth/logout'],
  ['our logout route with parameters', '/api;a/;b/auth;c/logout'],
  ['our logout route with an encoded query', '/api/auth%3Fx'],
  ['our logout route in capitals', '/API/Auth/logout'],
  ['our login route with a query', '/api/auth/login?return_to=/'],
  ['the folder of our routes', '/api/auth'],
  ['the folder of our routes with a fragment', '/api/auth#a'],
  ['our logout route with escaped letters', '/api/%61uth/%6cogout'],
  ['our logout route below the path of a deployment', '/tools/viewer/api/auth/logout'],
  ['2,049 characters', `/${'x'.repeat(2048)}`]
]

test('every path, query and fragment of this origin is accepted unchanged', t => {
  for (const value of plain) t.is(safeReturnTo(value), value)
})

test('characters that a URL cannot contain are percent-encoded', t => {
  for (const [given, accepted] of encoded) t.is(safeReturnTo(given), accepted)
})

test('a value that may lead to another site or to a route of this server is replaced by the start page', t => {
  for (const [what, value] of doubtful) t.is(safeReturnTo(value), '/', what)
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
