// Every response has `X-Request-Id`, whoever sent it: a route, a file, an API behind the proxy, a custom route, forward-auth, or
// Node's parser. The log line of a request has the same id.
import test from 'ava'
import type { Context } from 'koa'
import { askForwardAuth } from '../../helpers/gateway.js'
import { sendRaw } from '../../helpers/raw.js'
import { signIn, startTestServer } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { startProxy, startUpstream } from '../../helpers/upstream.js'
import { sessionHeader, startWithRoute } from '../support.js'

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const requests: readonly (readonly [method: string, path: string, status: number])[] = [
  ['GET', '/page.html', 200],
  ['HEAD', '/page.html', 200],
  ['GET', '/nothing', 404],
  ['OPTIONS', '/page.html', 405],
  ['GET', '/healthz', 200],
  ['HEAD', '/readyz', 200],
  ['GET', '/api/auth/login', 302],
  ['GET', '/api/auth/callback', 400],
  ['GET', '/api/auth/logout', 302],
  ['GET', '/api/auth/client.js', 200],
  ['GET', '/api/auth/profile', 401]
]

test('without log.requests every response has a request id, which is a new UUID or the well-formed id of the client', async t => {
  const wwwroot = await tempFolder(t, { 'page.html': '<p>a page' })
  const { browser } = await startTestServer(t, { settings: { wwwroot, log: { requests: false } } })
  const ids = new Set<string>()
  for (const [method, path, status] of requests) {
    const response = await browser.request(method, path)
    t.is(response.statusCode, status, path)
    t.regex(String(response.headers['x-request-id']), uuid, `${method} ${path}`)
    ids.add(String(response.headers['x-request-id']))
    const named = await browser.request(method, path, { headers: { 'x-request-id': 'sent-1' } })
    t.is(named.headers['x-request-id'], 'sent-1', `${method} ${path}`)
  }
  for (const sent of ['Root=1-5e1b4151-5ac6c58f5b2d9a3b1c', 'a'.repeat(128)]) {
    t.is((await browser.get('/nothing', { headers: { 'x-request-id': sent } })).headers['x-request-id'], sent)
  }
  for (const sent of ['', ' ', 'a b', '<script>', '"quoted"', 'a'.repeat(129), '\xfcn\xefc', '{"a":1}', 'a,b', "'"]) {
    const { headers, json } = await browser.get('/nothing', { headers: { 'x-request-id': sent } })
    t.regex(String(headers['x-request-id']), uuid, sent)
    t.is(json().request_id, headers['x-request-id'])
    ids.add(String(headers['x-request-id']))
  }
  t.is(ids.size, requests.length + 10)

  const { etag } = (await browser.get('/page.html')).headers
  const unchanged = await browser.get('/page.html', { headers: { 'if-none-match': String(etag) } })
  t.is(unchanged.statusCode, 304)
  t.regex(String(unchanged.headers['x-request-id']), uuid)
})

const others = { 'X-Request-Id': 'of-the-handler' }
const handlers: Readonly<Record<string, (ctx: Context) => void>> = {
  'sets another id': ctx => {
    ctx.set(others)
    ctx.body = 'done'
  },
  'writes the head itself': ctx => {
    ctx.respond = false
    ctx.res.writeHead(200, others).end('done')
  },
  'throws an error with another id': ctx => ctx.throw(409, 'x', { headers: others })
}
for (const [what, handle] of Object.entries(handlers)) {
  test(`the response of a custom route has the request id of the log if the route ${what}`, async t => {
    const { browser } = await startWithRoute(t, 'single', handle)
    await signIn(browser)
    const response = await browser.get('/own', { headers: { accept: 'application/json', 'x-request-id': 'sent-1' } })
    t.is(response.headers['x-request-id'], 'sent-1')
    if (response.statusCode === 409) t.is(response.json().request_id, 'sent-1')
  })
}

test('an API gets the id of the request, and its own id does not replace that of the response', async t => {
  const upstream = await startUpstream(t, (_request, response) => response.writeHead(200, others).end('{}'))
  const { browser } = await startProxy(t, { rules: [`GET /api/x ${upstream.origin}/x`] })
  const sent = ['sent-1', undefined, 'not well-formed']
  const responses = []
  for (const id of sent) responses.push(await browser.fetch('/api/x', { headers: { 'x-request-id': id } }))
  const ids = responses.map(({ headers }) => headers['x-request-id'])
  t.is(ids[0], 'sent-1')
  for (const id of ids.slice(1)) t.regex(String(id), uuid)
  t.deepEqual(
    upstream.requests.map(request => request.headers('x-request-id')),
    ids.map(id => [String(id)])
  )
})

test('each response of forward-auth has a request id, which its log line repeats', async t => {
  const settings = { forwardAuth: { address: '127.0.0.1:0' }, log: { requests: true } }
  const { browser, logs, server } = await startTestServer(t, { settings })
  const port = server.forwardAuthPort as number
  await signIn(browser)
  const cookie = sessionHeader(browser)
  const responses = [
    await askForwardAuth(port, { headers: { cookie, 'x-request-id': 'sent-1' } }),
    await askForwardAuth(port),
    await askForwardAuth(port, { headers: { cookie, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' } })
  ]
  t.deepEqual(
    responses.map(({ status }) => status),
    [200, 401, 403]
  )
  const ids = responses.map(({ headers }) => headers['x-request-id'])
  t.is(ids[0], 'sent-1')
  for (const id of ids.slice(1)) t.regex(String(id), uuid)
  t.deepEqual(
    logs.all('forward_auth').map(({ request_id }) => request_id),
    ids
  )
})

const unparsed: readonly (readonly [request: string, status: number])[] = [
  ['NONSENSE\r\n\r\n', 400],
  ['GET / HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: sent-1\r\n', 408],
  [`GET / HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: sent-1\r\nCookie: ${'x'.repeat(70_000)}\r\n\r\n`, 431]
]
test('a request that Node rejects gets a new request id, on the port of forward-auth, too, and its log line has this id', async t => {
  const limits = { headersTimeout: 300, requestTimeout: 300, connectionsCheckingInterval: 50 }
  const settings = { forwardAuth: { address: '127.0.0.1:0' } }
  const { logs, server } = await startTestServer(t, { limits, settings })
  const ids: unknown[] = []
  for (const port of [server.port, server.forwardAuthPort as number]) {
    for (const [request, status] of unparsed) {
      const { answers, closedByServer } = await sendRaw(port, request)
      t.deepEqual(
        answers.map(({ statusCode }) => statusCode),
        [status],
        request.slice(0, 80)
      )
      const body = JSON.parse(String(answers[0]?.body)) as Record<string, unknown>
      t.deepEqual(Object.keys(body), ['error', 'error_description', 'request_id'])
      const id = /^x-request-id: (.+)$/im.exec(answers[0]?.head ?? '')?.[1]
      t.regex(String(id), uuid)
      t.is(body.request_id, id)
      t.true(closedByServer)
      ids.push(id)
    }
  }
  t.deepEqual(
    logs.all('client_error').map(({ request_id }) => request_id),
    ids
  )
})
