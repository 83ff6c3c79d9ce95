// A successful proxied request, and requests that are rejected and never forwarded: targets that are not in their normal form, which
// these tests send as raw request lines, and bodies that a body parser has read.
import http from 'node:http'
import { text } from 'node:stream/consumers'
import test, { type ExecutionContext } from 'ava'
import { createApp } from '#src/server/start-server.js'
import { collectLogs } from '../helpers/logs.js'
import { type ModeName, modes } from '../helpers/modes.js'
import { listen } from '../helpers/ports.js'
import { startProxy, startUpstream } from '../helpers/upstream.js'
import { words } from '../helpers/words.js'
import { openedFields } from '../web/support.js'

async function start(
  t: ExecutionContext,
  rule = 'GET,POST /api/hubs/** UPSTREAM/v1/hubs/**',
  mode: ModeName = 'single'
) {
  const upstream = await startUpstream(t)
  const proxied = await startProxy(t, { rules: [rule.replace('UPSTREAM', upstream.origin)] }, { mode })
  /** Sends a request with the session cookie whose target is sent byte for byte. */
  const statusOf = async (target: string) => {
    const request = `GET ${target} HTTP/1.1\r\nHost: localhost\r\nCookie: COOKIE\r\nConnection: close\r\n\r\n`
    return (await proxied.raw(request)).answers[0]?.statusCode
  }
  return { ...proxied, upstream, statusOf }
}

for (const mode of modes) {
  test(`in ${mode} mode a request that matches a rule reaches the upstream with the access token for the server`, async t => {
    const { browser, config, upstream } = await start(t, undefined, mode)
    const response = await browser.fetch('/api/hubs/b.1/projects?filter[x]=1&a={|}^')
    t.deepEqual([response.statusCode, response.text()], [200, '{}'])
    const [request] = upstream.requests
    t.is(request?.url, '/v1/hubs/b.1/projects?filter[x]=1&a={|}^')
    t.is(request?.method, 'GET')
    t.deepEqual(request?.headers('host'), [`127.0.0.1:${upstream.port}`])
    t.deepEqual(request?.headers('via'), ['1.1 platform-auth-server'])
    const { token, internal_token } = openedFields(browser, { config })
    t.deepEqual(request?.headers('authorization'), [`Bearer ${internal_token ?? token}`])
  })
}

test('a rule with token=public sends the public token instead of the internal one', async t => {
  const { browser, config, upstream } = await start(t, 'GET /api/hubs/** UPSTREAM/** token=public', 'dual')
  t.is((await browser.fetch('/api/hubs/b.1')).statusCode, 200)
  const { public_token, internal_token } = openedFields(browser, { config })
  t.deepEqual(upstream.requests[0]?.headers('authorization'), [`Bearer ${public_token}`])
  t.not(public_token, internal_token)
})

// What the upstream gets for a target. The first two come from the SDK of the platform, which joins its host and its paths with one
// slash too many. Koa would rewrite some of the queries.
const unchanged: readonly (readonly [target: string, sent: string])[] = [
  ['//api/hubs/x', '/v1/hubs/x'],
  ['///api/hubs/x?y=//z', '/v1/hubs/x?y=//z'],
  ...words`two%20words 100%25 100%2520done Z%C3%BCrich %E6%9D%B1%E4%BA%AC.rvt v1.%20.2 ...`.map(
    name => [`/api/hubs/${name}`, `/v1/hubs/${name}`] as const
  ),
  ['/api/hubs?a=\\|{}^"<>`&b=/../..//%zz%2e', '/v1/hubs?a=\\|{}^"<>`&b=/../..//%zz%2e'],
  ["/api/hubs/urn:a|b[c]@!$&'()*+,;=~?", "/v1/hubs/urn:a|b[c]@!$&'()*+,;=~?"],
  ['http://localhost:8080/api/hubs/x?y', '/v1/hubs/x?y']
]

test('paths and queries are forwarded byte for byte, except slashes at the beginning of the path, which are merged', async t => {
  const { statusOf, upstream } = await start(t)
  for (const [target] of unchanged) t.is(await statusOf(target), 200, JSON.stringify(target))
  t.deepEqual(
    upstream.requestLines,
    unchanged.map(([, sent]) => `GET ${sent}`)
  )
})

test('rules do not apply to the paths of this server itself, and files take precedence over rules', async t => {
  const { browser, upstream } = await start(t, 'GET /*/** UPSTREAM/*/**')
  t.is((await browser.get('/healthz')).headers['content-type'], 'application/json; charset=utf-8')
  t.is((await browser.get('/api/auth/nothing')).statusCode, 404)
  t.is((await browser.get('/api/auth/profile')).statusCode, 200)
  t.regex((await browser.get('/index.html')).text(), /The application/)
  t.is(upstream.requests.length, 0)
  t.is((await browser.get('/anything/else')).statusCode, 200)
  t.is(upstream.requests.length, 1)
})

test('a body that a body parser has read is an error that says so, and the API gets no request', async t => {
  // The second server has the same settings, so it accepts the session of the first one.
  const { cookie, config, upstream } = await start(t)
  const { log, all } = await collectLogs()
  const handle = createApp(config, { log }).callback()
  const parser = http.createServer((request, response) => {
    request.on('data', () => {}).on('end', () => void handle(request, response))
  })
  const port = await listen(t, parser)
  async function send(method: string, body?: string) {
    const headers = { Cookie: cookie, 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/json' }
    const request = http.request({ port, host: '127.0.0.1', path: '/api/hubs', method, headers, agent: false })
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
