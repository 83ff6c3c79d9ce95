import test from 'ava'
import { type ForgeryReason, forgeryReason } from '#src/http/forward-auth-csrf.js'

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
  ['a form on another site', 'POST', { 'sec-fetch-site': 'cross-site', ...navigation }, 'other_site'],
  [
    'a fetch from a neighbouring host',
    'GET',
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' },
    'other_site'
  ],
  ['an unknown or repeated Sec-Fetch-Site', 'GET', { 'sec-fetch-site': 'same-origin, cross-site' }, 'other_site'],
  ['a POST from a page of this origin', 'POST', { 'sec-fetch-site': 'same-origin' }, undefined],
  ['a script of this origin', 'GET', { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'script' }, undefined],
  ['a POST without Sec-Fetch-Site and Origin', 'POST', {}, 'not_same_origin'],
  ['a DELETE with Sec-Fetch-Site none', 'DELETE', { 'sec-fetch-site': 'none' }, 'not_same_origin'],
  ['a POST with our Origin', 'POST', { origin: own }, undefined],
  ['a POST with our Origin and the default port', 'POST', { origin: 'https://app.example:443' }, undefined],
  ['a POST from another port of our host', 'POST', { origin: 'https://app.example:8443' }, 'other_origin'],
  ['a GET with another Origin, as a WebSocket handshake', 'GET', { origin: 'https://evil.example' }, 'other_origin'],
  ['a GET with the Origin null', 'GET', { origin: 'null' }, 'other_origin'],
  ['a POST with two Origins', 'POST', { origin: `${own}, https://evil.example` }, 'other_origin'],
  ['a request with an unknown method', 'BREW', {}, 'not_same_origin'],
  ['an OPTIONS request', 'OPTIONS', {}, undefined],
  ['a GET with the forwarded method POST', 'GET', { 'x-forwarded-method': 'POST' }, 'not_same_origin'],
  ['a GET with the original method POST', 'GET', { 'x-original-method': 'POST' }, 'not_same_origin'],
  ['a POST with the forwarded method GET', 'POST', { 'x-forwarded-method': 'GET' }, undefined],
  [
    'a request with the forwarded method GET and the original method DELETE',
    'GET',
    { 'x-forwarded-method': 'GET', 'x-original-method': 'DELETE' },
    'not_same_origin'
  ],
  [
    'a request with the forwarded method DELETE and the original method GET',
    'GET',
    { 'x-forwarded-method': 'DELETE', 'x-original-method': 'GET' },
    'not_same_origin'
  ],
  ['a request with two forwarded methods', 'GET', { 'x-forwarded-method': 'GET, GET' }, 'not_same_origin'],
  ['a request with a forwarded method in lower case', 'GET', { 'x-forwarded-method': 'get' }, 'not_same_origin'],
  [
    'a navigation whose original method is POST',
    'GET',
    { 'sec-fetch-site': 'cross-site', ...navigation, 'x-forwarded-method': 'GET', 'x-original-method': 'POST' },
    'other_site'
  ]
]

for (const [what, method, headers, reason] of table) {
  test(`forward-auth and CSRF: ${what} is ${reason === undefined ? 'accepted' : `rejected as ${reason}`}`, t => {
    t.is(forgeryReason({ method, headers }, own), reason)
  })
}
