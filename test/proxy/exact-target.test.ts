// Request targets that are not in their normal form are rejected and never forwarded. These tests send raw request lines.
import test from 'ava'
import { startProxy, startUpstream } from '../helpers/upstream.js'

/** A request with the session cookie whose target is sent byte for byte. */
const get = (target: string) =>
  `GET ${target} HTTP/1.1\r\nHost: localhost\r\nCookie: COOKIE\r\nConnection: close\r\n\r\n`

test('a target that is not in its normal form gets 400 and is not forwarded', async t => {
  const upstream = await startUpstream(t)
  const { raw } = await startProxy(t, { rules: [`GET /api/hubs/** ${upstream.origin}/v1/hubs/**`] })
  // Further targets are listed in test/proxy/routes.test.ts.
  const dots = ['/api/hubs/../secret', '/api/hubs/%2e%2e/secret', '/api/hubs/\\..\\x', '/x/../api/hubs']
  for (const target of [...dots, '/api/hubs/%00', '/api/hubs/\xfc', '/api/hubs/x#y', 'http://other.example/api/hubs']) {
    t.is((await raw(get(target))).answers[0]?.statusCode, 400, JSON.stringify(target))
  }
  t.is(upstream.requests.length, 0)
})

test('slashes at the beginning of a path are merged, because the SDK of the platform joins its host and its paths with one too many', async t => {
  const upstream = await startUpstream(t)
  const { raw } = await startProxy(t, { rules: [`GET /api/hubs/** ${upstream.origin}/v1/hubs/**`] })
  for (const target of ['//api/hubs/x', '///api/hubs/x?y=//z']) {
    t.is((await raw(get(target))).answers[0]?.statusCode, 200, target)
  }
  t.deepEqual(upstream.requestLines, ['GET /v1/hubs/x', 'GET /v1/hubs/x?y=//z'])
})

test('names with escaped spaces, percent signs and letters of any language are forwarded unchanged', async t => {
  const upstream = await startUpstream(t)
  const { browser } = await startProxy(t, { rules: [`GET /api/hubs/** ${upstream.origin}/v1/hubs/**`] })
  const names = ['two%20words', '100%25', '100%2520done', 'Z%C3%BCrich', '%E6%9D%B1%E4%BA%AC.rvt', 'v1.%20.2', '...']
  for (const name of names) t.is((await browser.get(`/api/hubs/${name}`)).statusCode, 200, name)
  const urls = upstream.requests.map(({ url }) => url)
  t.deepEqual(
    urls,
    names.map(name => `/v1/hubs/${name}`)
  )
})

test('the query is forwarded byte for byte, even if Koa would rewrite it', async t => {
  const upstream = await startUpstream(t)
  const { raw } = await startProxy(t, { rules: [`GET /api/hubs/** ${upstream.origin}/v1/hubs/**`] })
  const targets = [
    ['/api/hubs?a=\\|{}^"<>`&b=/../..//%zz%2e', '/v1/hubs?a=\\|{}^"<>`&b=/../..//%zz%2e'],
    ["/api/hubs/urn:a|b[c]@!$&'()*+,;=~?", "/v1/hubs/urn:a|b[c]@!$&'()*+,;=~?"],
    ['http://localhost:8080/api/hubs/x?y', '/v1/hubs/x?y']
  ] as const
  for (const [target] of targets) {
    t.is((await raw(get(target))).answers[0]?.statusCode, 200, JSON.stringify(target))
  }
  const urls = upstream.requests.map(({ url }) => url)
  t.deepEqual(
    urls,
    targets.map(([, expected]) => expected)
  )
})

test('rules do not apply to the paths of this server itself, and files take precedence over rules', async t => {
  const upstream = await startUpstream(t)
  const { browser } = await startProxy(t, { rules: [`GET /*/** ${upstream.origin}/*/**`] })
  t.is((await browser.get('/healthz')).headers['content-type'], 'application/json; charset=utf-8')
  t.is((await browser.get('/api/auth/nothing')).statusCode, 404)
  t.is((await browser.get('/api/auth/profile')).statusCode, 200)
  t.regex((await browser.get('/index.html')).text(), /The application/)
  t.is(upstream.requests.length, 0)
  t.is((await browser.get('/anything/else')).statusCode, 200)
  t.is(upstream.requests.length, 1)
})

test('a path without a rule gets the same response as it would without a proxy', async t => {
  const upstream = await startUpstream(t)
  const { browser } = await startProxy(t, { rules: [`GET /api/hubs ${upstream.origin}/hubs`] })
  for (const path of ['/api/hubsX', '/API/hubs', '/api/hubs/', '/elsewhere'])
    t.is((await browser.get(path)).statusCode, 404, path)
  t.is((await browser.get('/')).statusCode, 200)
  t.is(upstream.requests.length, 0)
})
