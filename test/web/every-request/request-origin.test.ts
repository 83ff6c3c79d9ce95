import test from 'ava'
import { type OriginRejection, rejectionOf } from '#src/web/every-request/request-origin.js'
import { requireTokens } from '#src/web/routes/custom-routes.js'
import { askForwardAuth } from '../../helpers/gateway.js'
import { signIn } from '../../helpers/server.js'
import { startProxy, startUpstream } from '../../helpers/upstream.js'
import { words } from '../../helpers/words.js'
import { customRoute, handledBy, sessionHeader, startSignedIn, startWithRoute } from '../support.js'

const own = 'https://app.example'
const webSocket = { 'sec-websocket-version': '13' }
const navigation = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
const crossSite = { 'sec-fetch-site': 'cross-site' }
const sameSite = { 'sec-fetch-site': 'same-site' }
const sameOrigin = { 'sec-fetch-site': 'same-origin' }
const prerender = { 'sec-purpose': 'prefetch;prerender' }

type Headers = Readonly<Record<string, string>>

/** A row without a reason is accepted. */
const table: readonly (readonly [what: string, method: string, headers: Headers, reason?: OriginRejection])[] = [
  ['a GET without Fetch Metadata', 'GET', {}],
  ['a link from another site', 'GET', { ...crossSite, ...navigation }],
  ['a link through a service worker', 'GET', { ...crossSite, ...navigation, 'sec-fetch-dest': 'empty' }],
  ['a link with the Origin of a login form', 'GET', { ...crossSite, ...navigation, origin: 'https://idp.example' }],
  ['a HEAD navigation', 'HEAD', { ...crossSite, ...navigation }],
  ['a link from a neighbouring host', 'GET', { ...sameSite, ...navigation }],
  ['an image on another site', 'GET', { ...crossSite, 'sec-fetch-mode': 'no-cors' }, 'other_site'],
  ['a form with another Origin', 'POST', { ...crossSite, ...navigation, origin: 'https://evil.example' }, 'other_site'],
  ['a frame on another site', 'GET', { ...crossSite, ...navigation, 'sec-fetch-dest': 'iframe' }, 'other_site'],
  ['a form on another site', 'POST', { ...crossSite, ...navigation }, 'other_site'],
  ['a fetch from a neighbouring host', 'GET', { ...sameSite, 'sec-fetch-mode': 'cors' }, 'other_site'],
  ['an unknown or repeated Sec-Fetch-Site', 'GET', { 'sec-fetch-site': 'same-origin, cross-site' }, 'other_site'],
  ['a POST from a page of this origin', 'POST', sameOrigin],
  ['a script of this origin', 'GET', { ...sameOrigin, 'sec-fetch-dest': 'script' }],
  ['a POST without Sec-Fetch-Site and Origin', 'POST', {}, 'not_same_origin'],
  ['a DELETE with Sec-Fetch-Site none', 'DELETE', { 'sec-fetch-site': 'none' }, 'not_same_origin'],
  ['a POST with our Origin', 'POST', { origin: own }],
  ['a POST with our Origin and the default port', 'POST', { origin: 'https://app.example:443' }],
  ['a POST from another port of our host', 'POST', { origin: 'https://app.example:8443' }, 'other_origin'],
  ['a GET with another Origin, as a WebSocket handshake', 'GET', { origin: 'https://evil.example' }, 'other_origin'],
  ['a GET with the Origin null', 'GET', { origin: 'null' }, 'other_origin'],
  ['a POST with two Origins', 'POST', { origin: `${own}, https://evil.example` }, 'other_origin'],
  ['a request with an unknown method', 'BREW', {}, 'not_same_origin'],
  ['an OPTIONS request', 'OPTIONS', {}],
  ['a POST whose Origin a gateway has rewritten', 'POST', { ...sameOrigin, origin: 'http://localhost' }],
  ['the same without Fetch Metadata', 'POST', { origin: 'http://localhost' }, 'other_origin'],
  ['the same of another site', 'POST', { ...crossSite, origin: own }, 'other_site'],
  ['a typed URL with an unknown Upgrade', 'GET', { upgrade: 'h2c', 'sec-fetch-site': 'none', ...navigation }],
  ['an unknown Upgrade without Fetch Metadata', 'GET', { upgrade: 'TLS/1.0' }],
  ['a POST with an unknown Upgrade', 'POST', { upgrade: 'h2c' }, 'not_same_origin'],
  ['a WebSocket among other protocols', 'GET', { upgrade: 'h2c, WebSocket/13' }, 'not_same_origin'],
  [
    'a WebSocket of our page with a rewritten Origin',
    'GET',
    { ...webSocket, ...sameOrigin, origin: 'http://localhost' },
    'other_origin'
  ],
  ['a WebSocket of our page', 'GET', { upgrade: 'websocket', 'sec-websocket-version': '13', origin: own }],
  ['a WebSocket of our page in Firefox', 'GET', { ...webSocket, origin: own, ...sameOrigin }],
  ['a WebSocket of a neighbouring host', 'GET', { ...webSocket, origin: 'https://evil.example' }, 'other_origin'],
  ['a WebSocket with the Origin null', 'GET', { ...webSocket, origin: 'null' }, 'other_origin'],
  ['a WebSocket without Origin', 'GET', { ...webSocket }, 'not_same_origin'],
  ['a speculative prefetch', 'GET', { 'sec-purpose': 'prefetch', 'sec-fetch-site': 'none', ...navigation }, 'prefetch'],
  ['a prefetch without Fetch Metadata', 'GET', { 'sec-purpose': 'prefetch' }, 'prefetch'],
  ['a script of our prerendered page', 'GET', { ...prerender, ...sameOrigin, 'sec-fetch-dest': 'script' }],
  ['a form of our page with the policy no-referrer', 'POST', { origin: 'null', ...sameOrigin, ...navigation }]
]

for (const [what, method, headers, reason] of table) {
  test(`forward-auth and the origin of a request: ${what} is ${reason === undefined ? 'accepted' : `rejected as ${reason}`}`, t => {
    t.is(rejectionOf({ methods: [method], headers }, 'forwardAuth', { publicOrigin: own }), reason)
  })
}

const ofEverywhere: readonly (readonly [what: string, headers: Headers, reason?: OriginRejection])[] = [
  ['no header of a browser', {}, 'no_origin'],
  ['a Referer of another site', { referer: 'http://evil.example/page' }, 'no_origin'],
  ['a Referer of a sibling subdomain', { referer: 'https://evil.app.example/' }, 'no_origin'],
  ['a Referer of another port', { referer: `${own}:8443/` }, 'no_origin'],
  ['a Referer with our host as its user name', { referer: `${own}@evil.example/` }, 'no_origin'],
  ['an empty Referer', { referer: '' }, 'no_origin'],
  ['a Referer of a page of the browser', { referer: 'about:blank' }, 'no_origin'],
  ['a Referer of our page', { referer: `${own}/settings?tab=devices` }],
  ['our Origin', { origin: own }],
  ['another Origin and a Referer of our page', { origin: 'https://evil.example', referer: `${own}/` }, 'other_origin'],
  ['the Origin null', { origin: 'null' }, 'other_origin'],
  ['Sec-Fetch-Site same-origin', { ...sameOrigin, ...navigation }],
  ['Sec-Fetch-Site none', { 'sec-fetch-site': 'none', ...navigation }],
  ['Sec-Fetch-Site cross-site and a Referer of our page', { ...crossSite, referer: own, ...navigation }, 'other_site']
]

for (const [what, headers, reason] of ofEverywhere) {
  test(`a logout everywhere with ${what} is ${reason === undefined ? 'accepted' : `rejected as ${reason}`}`, t => {
    t.is(rejectionOf({ methods: ['GET'], headers }, 'logoutEverywhere', { publicOrigin: own }), reason)
  })
}

// The headers that Chromium 156 sends if a page of a sibling subdomain causes the request. The cookie is sent in each case.
const evil = 'http://evil.localhost:8080'
const ofSibling: Readonly<Record<string, Headers>> = {
  'a WebSocket': { Origin: evil, Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
  'a WebSocket whose header Upgrade a proxy has removed': { Origin: evil, 'Sec-WebSocket-Version': '13' },
  'a fetch over plain http, where browsers send no Fetch Metadata': { Origin: evil },
  'a fetch': { Origin: evil, 'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'cors', 'Sec-Fetch-Dest': 'empty' },
  'an image': { 'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'image' },
  'a frame': { 'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'iframe' },
  'a prefetch of speculation rules': { 'Sec-Purpose': 'prefetch', 'Sec-Fetch-Site': 'none', ...navigation }
}

for (const [what, headers] of Object.entries(ofSibling)) {
  test(`${what} of a sibling subdomain cannot use the session`, async t => {
    const upstream = await startUpstream(t)
    const { browser, server } = await startProxy(
      t,
      { rules: [`GET /api/x ${upstream.origin}/x`] },
      { mode: 'dual', settings: { forwardAuth: { address: '127.0.0.1:0' } }, parts: handledBy(requireTokens) }
    )
    const cookie = sessionHeader(browser)
    for (const path of words`/api/auth/logout /api/auth/profile /api/auth/token /api/x /own`) {
      const answer = await browser.get(path, { headers: { cookie, ...headers } })
      t.deepEqual([answer.statusCode, answer.setCookies], [403, []], path)
      t.notRegex(answer.rawHeaders.join('\n'), /access-control-/i)
    }
    t.is((await askForwardAuth(server.forwardAuthPort as number, { headers: { cookie, ...headers } })).status, 403)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.deepEqual(upstream.requestLines, [])
  })
}

test('a custom route behind requireTokens accepts links from other sites and all requests of its own pages', async t => {
  const { browser } = await startWithRoute(t, 'single', ctx => {
    ctx.body = 'the handler ran'
  })
  await signIn(browser)
  t.is((await browser.navigate(customRoute, { from: 'https://portal.example' })).statusCode, 200)
  t.is((await browser.fetch(customRoute)).statusCode, 200)
  t.is((await browser.fetch(customRoute, { dest: 'script' })).statusCode, 200)
  const post = (headers: Record<string, string>) => browser.request('POST', customRoute, { headers })
  t.is((await post({})).statusCode, 200)
  t.is((await post({ Origin: browser.origin ?? '' })).statusCode, 200)
  t.is((await post({ Origin: 'null', 'Sec-Fetch-Site': 'same-origin' })).statusCode, 200)
  const refused = await post({ Origin: 'null' })
  t.deepEqual([refused.statusCode, refused.json().error], [403, 'cross_site_request'])
})

test('login refuses WebSockets and foreign origins, and a link on another site can log a user out', async t => {
  const { browser } = await startSignedIn(t)
  for (const headers of [{ Origin: evil }, { 'Sec-WebSocket-Version': '13' }]) {
    const answer = await browser.get('/api/auth/login', { headers })
    t.is(answer.statusCode, 403)
    t.deepEqual(answer.setCookies, [])
  }

  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  t.is((await browser.navigate('/api/auth/logout', { from: 'https://elsewhere.example' })).statusCode, 302)
})
