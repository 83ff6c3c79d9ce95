import test from 'ava'
import { type ForgeryReason, forgeryReason, isRequestedByBrowser } from '#src/http/forward-auth-csrf.js'

const own = 'https://app.example'
const navigation = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

const table: readonly (readonly [
  what: string,
  method: string,
  headers: Record<string, string>,
  reason: ForgeryReason | undefined
])[] = [
  ['a GET without Fetch Metadata', 'GET', {}, undefined],
  ['a link from another site', 'GET', { 'sec-fetch-site': 'cross-site', ...navigation }, undefined],
  ['a HEAD navigation', 'HEAD', { 'sec-fetch-site': 'cross-site', ...navigation }, undefined],
  ['a link from a neighbouring host', 'GET', { 'sec-fetch-site': 'same-site', ...navigation }, undefined],
  ['an image on another site', 'GET', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }, 'other_site'],
  [
    'a frame on another site',
    'GET',
    { 'sec-fetch-site': 'cross-site', ...navigation, 'sec-fetch-dest': 'iframe' },
    'other_site'
  ],
  ['a form of another site', 'POST', { 'sec-fetch-site': 'cross-site', ...navigation }, 'other_site'],
  ['a fetch of a neighbouring host', 'GET', { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' }, 'other_site'],
  ['an unknown or repeated Sec-Fetch-Site', 'GET', { 'sec-fetch-site': 'same-origin, cross-site' }, 'other_site'],
  ['a page of this origin', 'POST', { 'sec-fetch-site': 'same-origin' }, undefined],
  ['a script of this origin', 'GET', { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'script' }, undefined],
  ['a POST without any sign', 'POST', {}, 'not_same_origin'],
  ['a DELETE typed by somebody', 'DELETE', { 'sec-fetch-site': 'none' }, 'not_same_origin'],
  ['a POST with our Origin', 'POST', { origin: own }, undefined],
  ['our Origin with the default port', 'POST', { origin: 'https://app.example:443' }, undefined],
  ['another port of our host', 'POST', { origin: 'https://app.example:8443' }, 'other_origin'],
  ['a GET with another Origin, as a WebSocket handshake', 'GET', { origin: 'https://evil.example' }, 'other_origin'],
  ['the Origin null', 'GET', { origin: 'null' }, 'other_origin'],
  ['two Origins', 'POST', { origin: `${own}, https://evil.example` }, 'other_origin'],
  ['an unknown method', 'BREW', {}, 'not_same_origin'],
  ['OPTIONS', 'OPTIONS', {}, undefined],
  ['a forwarded POST in a GET', 'GET', { 'x-forwarded-method': 'POST' }, 'not_same_origin'],
  ['an original POST in a GET', 'GET', { 'x-original-method': 'POST' }, 'not_same_origin'],
  ['a GET forwarded by a POST', 'POST', { 'x-forwarded-method': 'GET' }, undefined],
  [
    'a forwarded GET and an original DELETE',
    'GET',
    { 'x-forwarded-method': 'GET', 'x-original-method': 'DELETE' },
    'not_same_origin'
  ],
  [
    'a forwarded DELETE and an original GET',
    'GET',
    { 'x-forwarded-method': 'DELETE', 'x-original-method': 'GET' },
    'not_same_origin'
  ],
  ['a forwarded method sent twice', 'GET', { 'x-forwarded-method': 'GET, GET' }, 'not_same_origin'],
  ['a method in lower case', 'GET', { 'x-forwarded-method': 'get' }, 'not_same_origin'],
  [
    'a navigation whose original method is POST',
    'GET',
    { 'sec-fetch-site': 'cross-site', ...navigation, 'x-forwarded-method': 'GET', 'x-original-method': 'POST' },
    'other_site'
  ]
]

for (const [what, method, headers, reason] of table) {
  test(`forward-auth and other sites: ${what} is ${reason ?? 'fine'}`, t => {
    t.is(forgeryReason({ method, headers }, own), reason)
  })
}

for (const [what, url, headersDistinct, isAsked] of [
  ['a question about another page', '/_forward_auth', { 'x-forwarded-uri': ['/page'] }, false],
  ['a question at the root about the root', '/', { 'x-forwarded-uri': ['/'] }, false],
  ['the forwarded address itself', '/_forward_auth', { 'x-forwarded-uri': ['/_forward_auth'] }, true],
  ['the original address itself', '/_forward_auth?a=1', { 'x-original-uri': ['/_forward_auth?a=1'] }, true],
  ['one of two addresses', '/auth', { 'x-original-uri': ['/page', '/auth'] }, true],
  ['a question without an address', '/auth', {}, false]
] as const) {
  test(`a browser that asks forward-auth itself: ${what}`, t => {
    t.is(isRequestedByBrowser({ url, headersDistinct: { ...headersDistinct } as Record<string, string[]> }), isAsked)
  })
}
