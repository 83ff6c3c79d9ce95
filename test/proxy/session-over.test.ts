// A response of an API that is open when its session ends.
import { EventEmitter } from 'node:events'
import { type IncomingMessage, ServerResponse } from 'node:http'
import test, { type ExecutionContext } from 'ava'
import type { Context } from 'koa'
import { createFairQueue } from '#src/base/fair-queue.js'
import { type Metrics, noMetrics } from '#src/base/metrics.js'
import type { Services } from '#src/web/middleware-services.js'
import { createExchange } from '#src/web/proxy/exchange.js'
import type { ForwardRoute } from '#src/web/proxy/routes.js'
import type { Upstreams } from '#src/web/proxy/upstream.js'
import { openSession } from '#src/web/request/session.js'
import { eventually } from '../helpers/eventually.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import type { TestServerOptions } from '../helpers/server.js'
import { type ProxiedServer, startProxy, startUpstream } from '../helpers/upstream.js'
import { answerOf, ask, newSession } from './clients.js'

/** Starts a server with an API whose responses go on until they are aborted. */
async function startEndless(t: ExecutionContext, options?: TestServerOptions) {
  const upstream = await startUpstream(t, (request, response) => {
    response.writeHead(200, {
      'Content-Type': request.url === '/events' ? 'text/event-stream' : 'application/x-ndjson'
    })
    const timer = setInterval(() => response.write('data: x\n\n'), 50)
    response.on('close', () => clearInterval(timer))
  })
  const rules = [`GET /api/* ${upstream.origin}/*`]
  return { upstream, rules, proxied: await startProxy(t, { rules }, options) }
}

/** Opens an event stream and a download, and returns how they end. */
async function openBoth(t: ExecutionContext, proxied: ProxiedServer, cookie?: string) {
  const paths = ['/api/events', '/api/download']
  const responses = await Promise.all(
    paths.map(path => answerOf(ask(t, proxied, { path, ...(cookie !== undefined && { cookie }) })))
  )
  const ends = responses.map(response => {
    const end = { closed: false, complete: false, bytes: 0 }
    response.on('error', () => {})
    response.on('data', chunk => {
      end.bytes += chunk.length
    })
    response.on('close', () => {
      end.closed = true
      end.complete = response.complete
    })
    return end
  })
  await eventually(() => ends.every(({ bytes }) => bytes > 0))
  return ends
}

const ended = { events: { closed: true, complete: true }, download: { closed: true, complete: false } }

async function assertEnded(t: ExecutionContext, ends: Awaited<ReturnType<typeof openBoth>>) {
  await eventually(() => ends.every(({ closed }) => closed))
  t.like(ends, [ended.events, ended.download])
}

test('a logout ends the open responses of a session, also of a copied cookie, and of no other session', async t => {
  const { proxied, upstream } = await startEndless(t)
  const [own, copied, other] = [
    await openBoth(t, proxied),
    await openBoth(t, proxied, proxied.cookie),
    await openBoth(t, proxied, await newSession(proxied))
  ]
  await proxied.browser.navigate('/api/auth/logout')
  for (const ends of [own, copied]) await assertEnded(t, ends)
  t.deepEqual(
    other.map(({ closed }) => closed),
    [false, false]
  )
  await Promise.all(upstream.requests.slice(0, 4).map(({ aborted }) => aborted))
  t.is(proxied.logs.all('response_ended_with_session').length, 4)
  t.is(proxied.logs.all('upstream_response_incomplete').length, 0)
})

test('a request that is queued at the logout is not sent, although the logout frees its place in the queue', async t => {
  const lengths: (() => number | undefined)[] = []
  const watch: Metrics['watch'] = (name, length) => void (name === 'queued_requests' && lengths.push(length))
  const metrics = { ...noMetrics, watch }
  const { proxied, upstream } = await startEndless(t, { parts: { metrics } })
  const requests = Array.from({ length: 32 }, () => ask(t, proxied))
  for (const request of requests) await answerOf(request)
  const queued = ask(t, proxied, { path: '/api/queued' })
  await eventually(() => lengths.some(length => length() === 1))
  await proxied.browser.navigate('/api/auth/logout')
  const { statusCode, headers } = await answerOf(queued)
  t.deepEqual([statusCode, headers['session-status']], [401, 'signed-out'])
  t.is(upstream.requests.length, 32)
})

test('the end of session.maxLifetime ends the open responses of a session, and a refresh does not', async t => {
  const { proxied } = await startEndless(t, { settings: { session: { maxLifetime: '3h' } } })
  const ends = await openBoth(t, proxied)
  proxied.clock.advanceSeconds(4000)
  t.is((await proxied.browser.get('/api/auth/profile')).statusCode, 200)
  const before = ends.map(({ bytes }) => bytes)
  await eventually(() => ends.every(({ bytes }, index) => bytes > (before[index] ?? 0) + 200))
  t.deepEqual(
    ends.map(({ closed }) => closed),
    [false, false]
  )
  proxied.clock.advanceSeconds(7000)
  await assertEnded(t, ends)
})

testWithRedis('a logout on another replica ends the open responses of a session', async t => {
  const { url } = await startRedis(t)
  const settings = { redis: { url } }
  const { proxied, rules } = await startEndless(t, { settings })
  const { idp, clock } = proxied
  const replica = await startProxy(t, { rules }, { settings, idp, clock })
  const ends = await openBoth(t, proxied)
  replica.connect(proxied.browser)
  await proxied.browser.navigate('/api/auth/logout')
  await assertEnded(t, ends)
})

test('3,000 responses leave nothing behind, whether they were short or lasted', async t => {
  const listeners = new Set<() => void>()
  const hooks = new Set<() => void>()
  let registrations = 0
  const add = (to: Set<() => void>, listener: () => void) => {
    to.add(listener)
    return () => void to.delete(listener)
  }
  const record = { id: 'x', rev: 1, fields: {} }
  const services = {
    config: { apiProxy: { maxBodyBytes: 0, requestHeaders: [], responseHeaders: [] } },
    site: { basePath: '' },
    log: { isLevelEnabled: () => false },
    metrics: noMetrics,
    sessionCookie: { open: () => record },
    sessions: {
      whenOver(_session: unknown, listener: () => void) {
        registrations += 1
        return add(listeners, listener)
      }
    },
    shutdown: { hooks: { onStop: (hook: () => void) => add(hooks, hook) } }
  } as unknown as Services
  const type = ['Content-Type', 'text/event-stream'].map(text => Buffer.from(text))
  let count = 0
  const upstreams = {
    send(_request, receiver) {
      count += 1
      receiver.responded(200, type)
      receiver.received(Buffer.from('x'))
      if (count % 3 > 0) receiver.lasts?.()
      receiver.ended()
      return { resume() {}, progressed() {}, abort() {} }
    },
    close: async () => {}
  } satisfies Upstreams
  const queue = createFairQueue({ inProgress: 10, waiting: 0 })
  const exchange = createExchange(services, () => undefined, upstreams, queue)
  const rule = { route: '/x', targetOrigin: 'https://a.example', token: 'internal' }
  const route = { kind: 'forward', rule, target: '/x' } as unknown as ForwardRoute
  for (let index = 0; index < 3000; index++) {
    const request = { method: 'GET', headers: {}, rawHeaders: [] }
    const req = Object.assign(new EventEmitter(), request) as unknown as IncomingMessage
    const state = { tokens: { internal: { access_token: 't' } } }
    const ctx = { req, res: new ServerResponse(req), method: 'GET', state, get: () => '' } as unknown as Context
    openSession(ctx, services)
    const turn = queue.enter({ queue: 'a', session: 's', user: 'u' })
    await exchange({ ctx, route, silenceMs: 1000, turn })
    queue.leave(turn)
  }
  t.deepEqual([count, registrations, listeners.size, hooks.size, queue.length()], [3000, 2000, 0, 0, 0])
})
