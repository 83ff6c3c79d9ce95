// The shipped nginx configuration for forward-auth, in front of a back end in Python.
//
// The internal token has the wide scope and stays on the server. In dual mode pages also get a public token, which has
// only the public scopes. In single mode there is only one token, and it stays on the server.
import type { ExecutionContext } from 'ava'
import { createBrowser } from '../../helpers/browser.js'
import { publicOrigin } from '../../helpers/config.js'
import { askForwardAuth, type GatewayRequest } from '../../helpers/gateway.js'
import { faults } from '../../helpers/hostile-idp/index.js'
import type { ModeName } from '../../helpers/modes.js'
import { testWhere } from '../../helpers/requirement.js'
import { signIn, startTestServer } from '../../helpers/server.js'
import { openedFields, sessionCookies, sessionHeader } from '../../http/support.js'
import { authorizationsIn, hasPython, startBackEnd } from './back-end.js'
import { hasNginx, runNginx } from './nginx.js'

const canRun = hasNginx && hasPython
const missing = 'nginx or python3 is not installed'

interface SiteOptions {
  readonly mode?: ModeName
  readonly accessTokenLength?: number
  /** Alters the shipped configuration. */
  readonly change?: (configuration: string) => string
}

async function startSite(
  t: ExecutionContext,
  { mode = 'single', accessTokenLength = 300, change = text => text }: SiteOptions = {}
) {
  const started = await startTestServer(t, { mode, overrides: { forwardAuth: { port: 0 } } })
  started.idp.settings.accessTokenLength = accessTokenLength
  const { server, clock } = started
  const addresses = {
    'server-1:8080': server.port,
    'server-1:4181': server.forwardAuthPort as number,
    'back-end:8000': await startBackEnd(t)
  }
  const nginx = await runNginx(t, 'deploy/proxy/nginx-forward-auth.conf', addresses, change)
  const browser = createBrowser(t, { origin: publicOrigin, connectTo: { [publicOrigin]: nginx.url }, now: clock.now })
  await signIn(browser)
  const port = Number(new URL(nginx.url).port)
  /** Sends a request with the browser's cookies and with headers that a browser would not send. */
  const send = ({ headers, ...request }: GatewayRequest) =>
    askForwardAuth(port, { ...request, headers: { cookie: sessionHeader(browser), ...headers } })
  return { ...started, nginx, browser, send, token: () => openedFields(browser, started).token }
}

for (const [mode, cookies, accessTokenLength] of [
  ['single', 1, 300],
  ['single', 2, 4500],
  ['dual', 1, 300],
  ['dual', 2, 2250]
] as const) {
  testWhere(
    canRun,
    missing,
    `nginx in ${mode} mode with ${cookies} session cookie(s): a session survives 24 refreshes although no answer sets a cookie`,
    async t => {
      const { browser, clock, idp } = await startSite(t, { mode, accessTokenLength })
      t.is(sessionCookies(browser).length, cookies)
      const old = sessionHeader(browser)
      const before = idp.tokenRequests.length
      for (let hour = 1; hour <= 24; hour++) {
        clock.advance(3_599_500)
        for (const status of [200, 204, 301, 404, 500]) {
          const answer = await browser.fetch(`/app/${status}`)
          t.is(answer.statusCode, status)
          t.deepEqual(answer.setCookies, [])
        }
      }
      t.is(idp.tokenRequests.length - before, mode === 'dual' ? 48 : 24)
      t.is(sessionHeader(browser), old)
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
      t.not(sessionHeader(browser), old)
      t.deepEqual(idp.reuses, [])
    }
  )
}

testWhere(
  canRun,
  missing,
  'the back end gets the internal token in Authorization, whatever headers the client sends',
  async t => {
    const { send, token } = await startSite(t)
    const attempts: readonly Readonly<Record<string, string | string[]>>[] = [
      {},
      { authorization: 'Bearer of-the-client' },
      { AUTHORIZATION: 'Bearer of-the-client' },
      { _authorization: 'Bearer of-the-client', 'author.ization': 'Bearer of-the-client' },
      { authorization: 'Bearer of-the-client', connection: 'Authorization' },
      { 'x-forwarded-authorization': 'Bearer of-the-client' },
      { 'proxy-authorization': 'Bearer of-the-client' }
    ]
    for (const headers of attempts) {
      const { status, body } = await send({ path: '/app', headers })
      t.is(status, 200, JSON.stringify(headers))
      t.deepEqual(authorizationsIn(JSON.parse(body)), [`Bearer ${token()}`], JSON.stringify(headers))
      t.false(body.includes('of-the-client') && !('x-forwarded-authorization' in headers), JSON.stringify(headers))
    }
    const twice = await send({ path: '/app', headers: { authorization: ['Bearer of-the-client', 'Bearer again'] } })
    t.is(twice.status, 400)
  }
)

testWhere(canRun, missing, 'a client cannot reach the forward-auth location of nginx', async t => {
  const { send, token } = await startSite(t)
  for (const path of [
    '/_forward_auth',
    '/_forward_auth?a=1',
    '//_forward_auth',
    '/a/../_forward_auth',
    '/%5fforward_auth'
  ]) {
    const { status, headers } = await send({ path })
    t.is(status, 404, path)
    t.false(JSON.stringify(headers).includes(token() as string), path)
  }
})

testWhere(
  canRun,
  missing,
  'no response of nginx contains the internal token, even if `internal` is missing or the back end redirects internally',
  async t => {
    const { send, token } = await startSite(t)
    const inside = await send({ path: '/accel-redirect' })
    t.is(inside.authorization, undefined)
    t.false(JSON.stringify(inside.headers).includes(token() as string))

    const open = await startSite(t, { change: text => text.replace('internal;', '') })
    const asked = await open.send({ path: '/_forward_auth' })
    t.is(asked.status, 200)
    t.is(asked.authorization, undefined)
  }
)

testWhere(
  canRun,
  missing,
  'if `internal` is missing and nginx forwards the path, the server refuses the request and logs forward_auth_open',
  async t => {
    for (const target of ['http://forward_auth;', 'http://forward_auth/_forward_auth;']) {
      const change = (text: string) => text.replace('internal;', '').replace('http://forward_auth/;', target)
      const { send, logs } = await startSite(t, { change })
      for (const path of ['/_forward_auth', '//_forward_auth', '/%5fforward_auth', '/x/../_forward_auth']) {
        t.is((await send({ path })).status, 403, `${target} ${path}`)
      }
      t.truthy(logs.find(({ event }) => event === 'forward_auth_open'))
    }
  }
)

testWhere(
  canRun,
  missing,
  'nginx passes on the statuses 401, 403 and 503, and redirects people without a session to the login',
  async t => {
    const { send, browser, clock, idp, nginx } = await startSite(t)
    const signedOut = await fetch(`${nginx.url}/app?a=1`, { redirect: 'manual' })
    t.is(signedOut.status, 401)
    const navigation = { 'sec-fetch-mode': 'navigate', cookie: '' }
    const led = await send({ path: '/app', headers: navigation })
    t.is(led.status, 302)
    t.is(led.headers.location, '/api/auth/login?return_to=/app')
    t.is((await send({ method: 'POST', path: '/app' })).status, 403)
    t.is((await send({ method: 'POST', path: '/app', headers: { origin: publicOrigin } })).status, 200)
    t.is(
      (await send({ path: '/app', headers: { 'x-original-method': 'GET', origin: 'https://evil.example' } })).status,
      403
    )
    clock.advanceSeconds(3600)
    idp.fail('token', faults.tooManyRequests(7))
    const busy = await send({ path: '/app' })
    t.is(busy.status, 503)
    t.is(busy.headers['retry-after'], '7')
    t.true(sessionCookies(browser).length > 0)
  }
)
