import test from 'ava'
import { type RoutePolicy, rejectionOf } from '#src/web/every-request/request-origin.js'
import { requireTokens } from '#src/web/routes/custom-routes.js'
import { assertCases } from '../../helpers/case-file.js'
import { askForwardAuth } from '../../helpers/gateway.js'
import { startProxy, startUpstream } from '../../helpers/upstream.js'
import { words } from '../../helpers/words.js'
import { handledBy, sessionHeader } from '../support.js'

const navigation = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

type Headers = Readonly<Record<string, string>>

/** Returns why requests with these methods and headers (`Name: value; …`) may not use the session. */
function reasonFor(methods: string, fields: string, [policy = '', , csrfHeader]: readonly string[]): string {
  const pairs = fields === '' ? [] : fields.split('; ').map(field => field.split(/: ?(.*)/s).slice(0, 2))
  const headers = Object.fromEntries(pairs.map(([name = '', value]) => [name.toLowerCase(), value]))
  const options = { publicOrigin: 'https://app.example', csrfHeader }
  const reasons = methods
    .split(',')
    .map(method => rejectionOf({ methods: [method], headers }, policy as RoutePolicy, options))
  return [...new Set(reasons)].map(reason => reason ?? 'accepted').join(' or ')
}

test('the headers of a request decide whether it may use the session of its browser', t =>
  assertCases(t, 'test/web/every-request/request-origins.txt', (request, [policy = '']) => {
    const [, methods = '', fields = ''] = request.split('|').map(part => part.trim())
    return reasonFor(methods, fields, policy.split(' '))
  }))

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
