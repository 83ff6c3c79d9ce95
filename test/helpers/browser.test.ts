import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import test, { type ExecutionContext } from 'ava'
import { createBrowser } from './browser.js'
import { listen } from './ports.js'

async function serve(t: ExecutionContext, listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(t, createServer(listener))}`
}

/** Responds with the method, the URL and the headers of the request. */
const echo: RequestListener = (request, response) => {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers }))
}

interface Echo {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
}

test('the browser sends the path exactly as the test gave it', async t => {
  const browser = createBrowser(t, { origin: await serve(t, echo) })
  t.is((await browser.get('/a/../b/%2e%2e//c?d=/..//e#f')).json<Echo>().url, '/a/../b/%2e%2e//c?d=/..//e')
  t.is((await browser.get('//evil.example/x')).json<Echo>().url, '//evil.example/x')
})

test('a navigation that another site redirects back is cross-site and sends Lax cookies but no Strict ones', async t => {
  const origin = (await serve(t, echo)).replace('127.0.0.1', 'localhost')
  const provider = await serve(t, (_request, response) => response.writeHead(302, { location: `${origin}/back` }).end())
  const browser = createBrowser(t, { origin, connectTo: { [origin]: origin.replace('localhost', '127.0.0.1') } })
  browser.cookies.receive(new URL(origin), ['lax=1; SameSite=Lax; Path=/', 'strict=1; SameSite=Strict; Path=/'])
  const { headers } = (await browser.navigate(provider, { from: provider, follow: true })).json<Echo>()
  t.is(headers['sec-fetch-site'], 'cross-site')
  t.is(headers.cookie, 'lax=1')
})

test('a response that is cut off rejects the request', async t => {
  const origin = await serve(t, (_request, response) => {
    response.writeHead(200, { 'content-length': 100 })
    response.write('half', () => response.socket?.destroy())
  })
  await t.throwsAsync(createBrowser(t, { origin }).get('/'), { code: 'ECONNRESET' })
})
