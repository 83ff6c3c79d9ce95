import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import test, { type ExecutionContext } from 'ava'
import { createBrowser } from './browser.js'
import { listen } from './ports.js'

async function serve(t: ExecutionContext, listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(t, createServer(listener))}`
}

/** Answers with the method, the URL and the headers of the request. */
const echo: RequestListener = (request, response) => {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers }))
}

interface Echo {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
}

test('the server and the cookie jar see the public origin and not the address that is connected to', async t => {
  const address = await serve(t, (request, response) => {
    response.setHeader('set-cookie', '__Host-a=1; Path=/; Secure; HttpOnly; SameSite=Lax')
    echo(request, response)
  })
  const browser = createBrowser(t, { origin: 'https://app.example', connectTo: { 'https://app.example': address } })
  await browser.get('/')
  const { headers } = (await browser.get('/a?b=c')).json<Echo>()
  t.is(headers.host, 'app.example')
  t.is(headers.cookie, '__Host-a=1')
})

test('the browser sends the path exactly as the test gave it', async t => {
  const browser = createBrowser(t, { origin: await serve(t, echo) })
  t.is((await browser.get('/a/../b/%2e%2e//c?d=/..//e#f')).json<Echo>().url, '/a/../b/%2e%2e//c?d=/..//e')
  t.is((await browser.get('//evil.example/x')).json<Echo>().url, '//evil.example/x')
})

test('the browser follows redirects only if asked, stores their cookies, and returns every response', async t => {
  const origin = await serve(t, (request, response) => {
    if (request.url !== '/start') return echo(request, response)
    response.writeHead(302, { location: '/end', 'set-cookie': 'a=1' }).end()
  })
  const browser = createBrowser(t, { origin })
  t.is((await browser.get('/start')).statusCode, 302)
  const end = await browser.get('/start', { follow: true })
  t.is(end.statusCode, 200)
  t.is(end.json<Echo>().headers.cookie, 'a=1')
  t.deepEqual(
    end.hops.map(({ statusCode }) => statusCode),
    [302, 200]
  )
})

test('navigations, scripts and cross-site images send the Sec-Fetch headers of a real browser', async t => {
  const origin = await serve(t, echo)
  const browser = createBrowser(t, { origin })
  const seen = async (response: Promise<{ json<T>(): T }>) => {
    const { headers } = (await response).json<Echo>()
    return [headers['sec-fetch-site'], headers['sec-fetch-mode'], headers['sec-fetch-dest'], headers.origin]
  }
  t.deepEqual(await seen(browser.navigate('/')), ['none', 'navigate', 'document', undefined])
  t.deepEqual(await seen(browser.fetch('/')), ['same-origin', 'cors', 'empty', undefined])
  t.deepEqual(await seen(browser.fetch('/', { from: 'https://evil.example' })), [
    'cross-site',
    'cors',
    'empty',
    'https://evil.example'
  ])
  t.deepEqual(await seen(browser.fetch('/', { from: 'https://evil.example', dest: 'image' })), [
    'cross-site',
    'no-cors',
    'image',
    undefined
  ])
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

test('the browser posts a form urlencoded, repeats a header given as a list and lets a test replace the Host header', async t => {
  const browser = createBrowser(t, { origin: await serve(t, echo) })
  const response = await browser.request('POST', '/', {
    form: { a: '1 2' },
    headers: { 'x-forwarded-for': ['1.1.1.1', '2.2.2.2'], host: 'other.example' }
  })
  const { method, headers } = response.json<Echo>()
  t.is(method, 'POST')
  t.is(headers['content-type'], 'application/x-www-form-urlencoded')
  t.is(headers['x-forwarded-for'], '1.1.1.1, 2.2.2.2')
  t.is(headers.host, 'other.example')
})

test('a clone keeps the cookies of the moment when it was made', async t => {
  const browser = createBrowser(t, { origin: await serve(t, echo) })
  browser.cookies.set('a', 'old', new URL(browser.origin ?? ''))
  const copy = browser.clone()
  browser.cookies.set('a', 'new')
  t.is((await copy.get('/')).json<Echo>().headers.cookie, 'a=old')
  t.is((await browser.get('/')).json<Echo>().headers.cookie, 'a=new')
})

test('a response that is cut off rejects the request', async t => {
  const origin = await serve(t, (_request, response) => {
    response.writeHead(200, { 'content-length': 100 })
    response.write('half', () => response.socket?.destroy())
  })
  await t.throwsAsync(createBrowser(t, { origin }).get('/'), { code: 'ECONNRESET' })
})
