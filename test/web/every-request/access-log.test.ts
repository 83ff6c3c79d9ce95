import { once } from 'node:events'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import test, { type ExecutionContext } from 'ava'
import { assertCases } from '../../helpers/case-file.js'
import { eventually } from '../../helpers/eventually.js'
import type { LogEntry } from '../../helpers/logs.js'
import { sendRaw } from '../../helpers/raw.js'
import { startTestServer, type TestServerOptions } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { handledBy } from '../support.js'

async function start(t: ExecutionContext, options: TestServerOptions = {}) {
  const started = await startTestServer(t, options)
  const requestLines = () => started.logs.all('request')
  /** Returns the log line of the latest request. The line is written when the whole response has been sent. */
  const line = async (count = 1): Promise<LogEntry> => {
    await eventually(() => requestLines().length >= count)
    return requestLines()[count - 1] ?? {}
  }
  return { ...started, requestLines, line }
}

test('each request has one log line with method, path, status, duration and client, and without the query or other headers', async t => {
  const { browser, line } = await start(t)
  const headers = { referer: 'http://localhost:8080/page', cookie: 'a=b' }
  const { 'x-request-id': id } = (await browser.get('/nothing?query=1', { headers })).headers
  const { level, time, request_id, duration_ms, ...rest } = await line()
  t.is(level, 'info')
  t.is(new Date(String(time)).toISOString(), String(time))
  t.is(request_id, id)
  t.true(Number.isInteger(duration_ms) && Number(duration_ms) >= 0)
  t.deepEqual(rest, {
    event: 'request',
    method: 'GET',
    path: '/nothing',
    status: 404,
    aborted: false,
    error_code: 'not_found',
    route: 'other',
    client_ip: '127.0.0.1',
    msg: 'request'
  })
})

test('what a custom route stores in ctx.state does not get into the log line of the request', async t => {
  const seen: unknown[] = []
  const parts = handledBy(ctx => {
    seen.push({ ...ctx.state })
    const custom = { error: 'custom value', reason: 'custom value' }
    Object.assign(ctx.state, { route: custom, error: custom, traceId: 'custom value', upstreamMs: 42 })
    ctx.throw(418, 'short and stout')
  })
  const { browser, line, logs } = await start(t, { parts, settings: { log: { requests: true, level: 'debug' } } })
  t.is((await browser.get('/mine')).statusCode, 418)
  const { error_code, reason, ...fields } = await line()
  t.deepEqual(seen, [{}])
  t.false([error_code, reason].includes('custom value'))
  t.like(fields, { status: 418, route: 'other' })
  t.false('upstream_header_ms' in fields)
  t.false(JSON.stringify(logs.all('request_rejected')).includes('custom value'))
})

test('a client that disconnects before the response is complete is logged as aborted, and its broken response for debugging only', async t => {
  const wwwroot = await tempFolder(t, { 'large.bin': Buffer.alloc(20_000_000) })
  const { server, logs, line } = await start(t, { settings: { wwwroot } })
  const client = connect({ port: server.port, host: '127.0.0.1' })
  client.write('GET /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await once(client, 'data')
  client.destroy()
  const aborted = await line()
  t.like(aborted, { path: '/large.bin', status: 200, aborted: true, client_ip: '127.0.0.1' })
  const broken = () => logs.all('response_broken')
  await eventually(() => broken().length > 0)
  const logged = broken().map(({ level, request_id }) => [level, request_id])
  t.deepEqual(logged, [['debug', aborted.request_id]])
})

test('if a response fails on the server after it has begun, the log has one error line', async t => {
  const { server, logs, line } = await start(t, {
    parts: handledBy(ctx => {
      ctx.body = Readable.from(failingHalfway())
    })
  })
  const { bytes, closedByServer } = await sendRaw(server.port, 'GET /own HTTP/1.1\r\nHost: localhost\r\n\r\n')
  t.regex(bytes.toString(), /^HTTP\/1\.1 200 OK\r\n[\s\S]*one half/)
  t.true(closedByServer)
  await line()
  const levels = logs.all('response_broken').map(({ level }) => level)
  t.deepEqual(levels, ['error'])
})

async function* failingHalfway() {
  yield 'one half'
  throw new Error('the disk is gone')
}

test('a client that disconnects as soon as a file is complete, as curl does, is not logged as aborted', async t => {
  const wwwroot = await tempFolder(t, { 'index.html': 'hello', 'large.bin': 'x'.repeat(400_000) })
  const { server, requestLines, line } = await start(t, { settings: { wwwroot } })
  for (let time = 1; time <= 40; time += 1) {
    const path = time % 2 === 0 ? '/' : '/large.bin'
    const { answers } = await sendRaw(server.port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`, { answers: 1 })
    t.is(answers[0]?.statusCode, 200)
    await line(time)
  }
  const aborted = requestLines().filter(({ aborted }) => aborted)
  t.deepEqual(aborted, [])
})

test('the logged client is the peer, or the address that the first trusted proxy added to X-Forwarded-For', async t => {
  const servers = await Promise.all(
    [0, 1, 2].map(async trustForwardedFor => ({
      count: 0,
      ...(await start(t, { settings: { log: { trustForwardedFor } } }))
    }))
  )
  await assertCases(t, 'test/web/every-request/client-addresses.txt', async (sent, [trusted]) => {
    const server = servers[Number.parseInt(trusted ?? '', 10)] as (typeof servers)[number]
    const others = { 'x-real-ip': '203.0.113.9', forwarded: 'for=203.0.113.8' }
    await server.browser.get('/', { headers: { ...others, 'x-forwarded-for': sent } })
    server.count += 1
    return String((await server.line(server.count)).client_ip)
  })
})

test('without log.requests, no request has a log line, also while the metrics count it', async t => {
  const settings = { log: { requests: false }, metrics: { address: '127.0.0.1:0' } }
  const { browser, requestLines } = await start(t, { settings })
  for (const path of ['/', '/nothing', '/healthz']) await browser.get(path)
  t.deepEqual(requestLines(), [])
})

test('a request for a health route is logged only if it fails', async t => {
  const { browser, server, logs, line, requestLines } = await start(t)
  for (const path of ['/healthz', '/readyz']) {
    await browser.get(path)
    await browser.request('HEAD', path)
  }
  await sendRaw(server.port, 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n')
  t.like(await line(), { path: '/healthz', status: 413 })
  await browser.get('/healthz.txt')
  t.like(await line(2), { path: '/healthz.txt', status: 404 })
  t.is(requestLines().length, 2)
  t.is(logs.entries.filter(({ event }) => event !== 'request_rejected').length, 2)
})
