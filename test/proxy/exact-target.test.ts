// Request targets that are not in their normal form are rejected and never forwarded. These tests send raw request lines.
import test, { type ExecutionContext } from 'ava'
import { startProxy, startUpstream } from '../helpers/upstream.js'
import { words } from '../helpers/words.js'

async function start(t: ExecutionContext, rule = 'GET /api/hubs/** UPSTREAM/v1/hubs/**') {
  const upstream = await startUpstream(t)
  const proxied = await startProxy(t, { rules: [rule.replace('UPSTREAM', upstream.origin)] })
  /** Sends a request with the session cookie whose target is sent byte for byte. */
  const statusOf = async (target: string) => {
    const request = `GET ${target} HTTP/1.1\r\nHost: localhost\r\nCookie: COOKIE\r\nConnection: close\r\n\r\n`
    return (await proxied.raw(request)).answers[0]?.statusCode
  }
  return { ...proxied, upstream, statusOf }
}

test('a target that is not in its normal form gets 400 and is not forwarded', async t => {
  const { statusOf, upstream } = await start(t)
  // Further targets are listed in test/proxy/routes.test.ts.
  const targets = words`
    /api/hubs/../secret /api/hubs/%2e%2e/secret /api/hubs/\..\x /x/../api/hubs /api/hubs/%00 /api/hubs/x#y
    http://other.example/api/hubs`
  for (const target of [...targets, '/api/hubs/\xfc']) t.is(await statusOf(target), 400, JSON.stringify(target))
  t.is(upstream.requests.length, 0)
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

test('a path without a rule gets the same response as it would without a proxy', async t => {
  const { browser, upstream } = await start(t, 'GET /api/hubs UPSTREAM/hubs')
  for (const path of words`/api/hubsX /API/hubs /api/hubs/ /elsewhere`) {
    t.is((await browser.get(path)).statusCode, 404, path)
  }
  t.is((await browser.get('/')).statusCode, 200)
  t.is(upstream.requests.length, 0)
})
