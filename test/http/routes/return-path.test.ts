import test from 'ava'
import fc from 'fast-check'
import { safeReturnTo } from '#src/http/routes/return-path.js'
import { anyText } from '../../helpers/any-text.js'

const plain = [
  '/',
  '/page',
  '/page/',
  '/a/b/c.html',
  '/?a=b',
  '/#part',
  '/page?next=/other&url=https://other.example/#part',
  '/page?a=//b&c=%2f%2fd',
  '/%20space',
  '/caf%C3%A9',
  '/a:b@c',
  '/~user/file;version=1,2',
  '/...',
  '/a..b',
  '/api/authors',
  '/api/other',
  "/it's",
  '/@name/~home/a;b=c,d/$!*()',
  '/page?#//evil.example',
  '/api/auth.html',
  '/page?next=/api/auth/logout',
  `/${'x'.repeat(2047)}`
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
  ['a space', '/a b'],
  ['a trailing space', '/page '],
  ['a no-break space', '/\u00a0/evil.example'],
  ['quotation marks', `/page?${'"'.repeat(2000)}`],
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
  ['a network path further on', '/a//evil.example'],
  ['a relative path', 'page'],
  ['a query alone', '?a=b'],
  ['a fragment alone', '#a'],
  ['letters beyond ASCII', '/café'],
  ['a character that looks like a slash', '/\u2044evil.example'],
  ['a full-width slash', '\uff0f\uff0fevil.example'],
  ['a lone surrogate', '/\ud800'],
  ['our logout route', '/api/auth/logout'],
  ['our login route with a query', '/api/auth/login?return_to=/'],
  ['the folder of our routes', '/api/auth'],
  ['the folder of our routes with a fragment', '/api/auth#a'],
  ['our logout route with escaped letters', '/api/%61uth/%6cogout'],
  ['our logout route below the path of a deployment', '/tools/viewer/api/auth/logout'],
  ['2,049 characters', `/${'x'.repeat(2048)}`]
]

for (const value of plain) {
  test(`the return_to value ${value.slice(0, 60)} is accepted`, t => {
    t.is(safeReturnTo(value), value)
  })
}

for (const [what, value] of doubtful) {
  test(`a return_to value with ${what} is replaced by the start page`, t => {
    t.is(safeReturnTo(value), '/')
  })
}

// Typical parts of attacks on redirects.
const pieces = fc.constantFrom(
  ...['/', '\\', '//', '..', '.', '@', ':', '?', '#', '%2f', '%5C', '%2e', '%09', '%0d%0a', '%00', '%25', '%E2%81%84'],
  ...['\t', '\n', '\r', ' ', '\0', '\u2028', '\ufeff', '；', 'https:', 'javascript:', 'evil.example', 'localhost', 'a']
)
const attacks = fc.array(pieces, { maxLength: 8 }).map(parts => parts.join(''))
const anything = fc.oneof(
  attacks,
  attacks.map(text => `/${text}`),
  anyText({ maxLength: 100 }),
  fc.webUrl({ withFragments: true, withQueryParameters: true }),
  fc.webPath()
)

test('no return_to value leads to another site or breaks a header line, also if a proxy or a page decodes it once more', t => {
  const origins = ['https://app.example', 'http://localhost:8080', 'https://app.example:8443/base/api/auth/callback']
  fc.assert(
    fc.property(anything, value => {
      const path = safeReturnTo(value)
      for (const base of origins) {
        const { origin, username, password } = new URL(path, base)
        if (origin !== new URL(base).origin || username || password) return false
      }
      const [start = ''] = path.split(/[?#]/)
      const decoded = start.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
      const hasTrick = decoded.includes('\\') || decoded.includes('//') || decoded.split('/').includes('..')
      if (hasTrick || [...decoded].some(character => character < ' ' || character === '\x7f')) return false
      return (path === value || path === '/') && /^\/(?![/\\])[!-~]*$/.test(path)
    }),
    { numRuns: 5000 }
  )
  t.pass()
})
