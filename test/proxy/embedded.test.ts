// Programs that put the server behind middleware, and the log of what the proxy did not forward.
import http from 'node:http'
import { text } from 'node:stream/consumers'
import test from 'ava'
import { createApp } from '#src/server/start.js'
import { collectLogs } from '../helpers/logs.js'
import { listen } from '../helpers/ports.js'
import { startProxy, startUpstream } from '../helpers/upstream.js'

test('at the level debug, one line names the request headers that were not forwarded', async t => {
  const upstream = await startUpstream(t)
  const rules = [`GET /api/** ${upstream.origin}/**`]
  const { browser, logs } = await startProxy(t, { rules }, { settings: { log: { level: 'debug' } } })
  await browser.get('/api/x', { headers: { 'x-user-id': 'somebody', 'x-ads-force': 'true', 'X-Secret': 'hunter2' } })
  t.deepEqual(upstream.requests[0]?.headers('x-ads-force'), ['true'])
  t.deepEqual(upstream.requests[0]?.headers('x-user-id'), [])
  const lines = logs.all('request_headers_not_forwarded')
  t.is(lines.length, 1)
  const { headers, route } = lines[0] as { readonly headers: readonly string[]; readonly route: string }
  t.regex(route, /^\/api\//)
  for (const name of ['cookie', 'x-user-id', 'x-secret']) t.true(headers.includes(name), name)
  t.false(headers.includes('x-ads-force'))
  t.notRegex(JSON.stringify(lines), /hunter2|somebody/)
})

test('a body that a body parser has read is an error that says so, and the API gets no request', async t => {
  const upstream = await startUpstream(t)
  const rules = [`GET,POST /api/** ${upstream.origin}/**`]
  // The second server has the same settings, so it accepts the session of the first one.
  const { cookie, config } = await startProxy(t, { rules })
  const { log, all } = await collectLogs()
  const handle = createApp(config, { log }).callback()
  const parser = http.createServer((request, response) => {
    request.on('data', () => {}).on('end', () => void handle(request, response))
  })
  const port = await listen(t, parser)
  async function send(method: string, body?: string) {
    const headers = { Cookie: cookie, 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/json' }
    const request = http.request({ port, host: '127.0.0.1', path: '/api/x', method, headers, agent: false })
    request.end(body)
    const response = await new Promise<http.IncomingMessage>(resolve => request.once('response', resolve))
    return [response.statusCode, await text(response)] as const
  }
  const [status, answer] = await send('POST', '{"a":1}')
  t.is(status, 500)
  t.regex(answer, /"error":"server_error"/)
  t.is(upstream.requests.length, 0)
  t.regex(JSON.stringify(all('request_failed')), /"level":"error".*body .* was read before the proxy.*apiProxy\.rules/)
  t.is((await send('GET'))[0], 200)
  t.is((await send('POST', ''))[0], 200)
})
