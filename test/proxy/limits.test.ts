// Many simultaneous requests, and stopping the server during requests. The rules of the queue are in test/base/fair-queue.test.ts.
import type { ServerResponse } from 'node:http'
import test from 'ava'
import { type Metrics, noMetrics } from '#src/base/metrics.js'
import { defaultCallbackUrl, discovered } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { startProxy, startUpstream } from '../helpers/upstream.js'
import { answerOf, ask, newSession, open, statusOf } from './clients.js'

test('one session may have 32 requests in progress, its next request is queued unless its client disconnects, and other sessions are not affected', async t => {
  const held: ServerResponse[] = []
  const upstream = await startUpstream(t, (request, response) => {
    if (request.url === '/x') {
      held.push(response)
      response.write('begun')
    } else response.end()
  })
  const rules = [`GET /api/impatient ${upstream.origin}/impatient timeout=1`, `GET,POST /api/* ${upstream.origin}/*`]
  const proxied = await startProxy(t, { rules })
  const requests = Array.from({ length: 32 }, () => ask(t, proxied))
  for (const request of requests) t.is(await statusOf(request), 200)
  const waiting = proxied.browser.get('/api/more')
  const upload = (path: string) => open(t, proxied, { path, method: 'POST' }).end('x'.repeat(10_000))
  const leaving = upload('/api/leaving')
  const staying = statusOf(upload('/api/staying'))
  const refused = await proxied.browser.get('/api/impatient')
  t.deepEqual([refused.statusCode, refused.headers['retry-after']], [503, '1'])
  t.is(await statusOf(ask(t, proxied, { cookie: await newSession(proxied), path: '/api/more' })), 200)
  leaving.destroy()
  await eventually(() => proxied.logs.entries.some(({ path }) => path === '/api/leaving'))
  requests[0]?.destroy()
  await eventually(() => held.some(({ closed }) => closed))
  t.is((await waiting).statusCode, 200)
  t.is(await staying, 200)
  t.false(upstream.requests.some(({ url }) => url === '/leaving'))
})

test('one user with many sessions cannot take all slots of an upstream', async t => {
  const held: ServerResponse[] = []
  const upstream = await startUpstream(t, (request, response) => {
    if (request.url === '/held') held.push(response)
    else response.end('{}')
  })
  const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
  const settings = { platform: { ...discovered(idp), scopes: ['openid', 'data:read'] } }
  const proxied = await startProxy(t, { rules: [`GET /api/* ${upstream.origin}/*`] }, { idp, settings })
  const signInAs = (sub: string) => {
    idp.settings.profile = { sub, name: sub }
    return newSession(proxied)
  }
  for (let count = 0; count < 3; count++) {
    const cookie = await signInAs('greedy')
    for (let more = 0; more < 32; more++) ask(t, proxied, { cookie, path: '/api/held' })
  }
  await eventually(() => held.length === 48)
  t.is(await statusOf(ask(t, proxied, { cookie: await signInAs('other') })), 200)
  t.is(held.length, 48)
})

test('a stopping server ends event streams immediately and lets other responses finish within the grace period', async t => {
  let slowAnswer: ServerResponse | undefined
  const upstream = await startUpstream(t, (request, response) => {
    if (request.url === '/events') {
      response.setHeader('Content-Type', 'text/event-stream; charset=utf-8')
      response.write('data: one\n\n')
    } else {
      response.write('begun')
      slowAnswer = response
    }
  })
  const proxied = await startProxy(t, { rules: [`GET /api/* ${upstream.origin}/*`] })
  const [events, slow] = await Promise.all(
    ['/api/events', '/api/slow'].map(path => answerOf(ask(t, proxied, { path })))
  )
  const [eventsText, slowText] = [events, slow].map(async response => {
    let text = ''
    for await (const chunk of response ?? []) text += String(chunk)
    return text
  })
  await eventually(() => upstream.requests.length === 2)
  const closed = proxied.server.close()
  t.is(await eventsText, 'data: one\n\n')
  slowAnswer?.end(' and ended')
  t.is(await slowText, 'begun and ended')
  await closed
})

test('the log lines and metrics of a proxied request contain neither its query nor a token', async t => {
  const upstream = await startUpstream(t)
  const outcomes: unknown[] = []
  const metrics: Metrics = { ...noMetrics, observe: (name, _seconds, labels) => void outcomes.push([name, labels]) }
  const rules = ['GET /api/nothing https://nowhere.invalid/x', `GET /api/* ${upstream.origin}/*`]
  const { browser, logs, idp } = await startProxy(t, { rules }, { parts: { metrics } })
  outcomes.length = 0
  await browser.get('/api/x?hidden=Qu3ryValue', { headers: { 'X-Ads-Region': 'R3gionValue' } })
  await eventually(() => logs.entries.some(({ event, path }) => event === 'request' && path === '/api/x'))
  const line = logs.find(({ event, path }) => event === 'request' && path === '/api/x')
  t.is(line?.status, 200)
  t.is(line?.route, '/api/*')
  t.is(typeof line?.upstream_header_ms, 'number')
  t.deepEqual(outcomes, [
    ['upstream_header_duration_seconds', { route: '/api/*', code: 200 }],
    ['http_request_duration_seconds', { route: '/api/*', code: 200 }]
  ])
  for (const secret of ['Qu3ryValue', 'R3gionValue', ...idp.issued.accessTokens.map(({ value }) => value)]) {
    t.false(logs.lines.some(text => text.includes(secret)))
  }
})

test('if the user logs out during a proxied request that refreshed the session, the response is 401 and sets no cookie', async t => {
  let answer: ServerResponse | undefined
  const upstream = await startUpstream(t, (_request, response) => {
    answer = response
  })
  const proxied = await startProxy(t, { rules: [`GET /api/x ${upstream.origin}/x`] })
  const other = proxied.browser.clone()
  proxied.clock.advanceSeconds(4000)
  const pending = proxied.browser.get('/api/x')
  await eventually(() => answer !== undefined)
  t.is((await other.navigate('/api/auth/logout')).statusCode, 302)
  answer?.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders()
  const response = await pending
  t.deepEqual([response.statusCode, response.body.length], [401, 0])
  t.deepEqual(response.setCookies, [])
  await upstream.requests[0]?.aborted
})
