import { createHash } from 'node:crypto'
import test, { type ExecutionContext } from 'ava'
import { pageScript } from '#src/pages/index.js'
import { StoreUnavailableError } from '#src/sessions/index.js'
import type { BrowserResponse } from '../../helpers/browser.js'
import { assertCases } from '../../helpers/case-file.js'
import { publicOrigin } from '../../helpers/config.js'
import { type Fault, faults } from '../../helpers/hostile-idp/index.js'
import { signIn, startLogin, startTestServer, type TestServer } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { customRoute, guarded, refreshOf, startDiscovered, startWithRoute, withParameters } from '../support.js'

const asPerson = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
const asProgram = { accept: 'application/json' }

type Cause = (server: TestServer, headers: Record<string, string>) => Promise<BrowserResponse>

const asking =
  (path: string, more: Record<string, string> = {}): Cause =>
  ({ browser }, headers) =>
    browser.get(path, { headers: { ...headers, ...more } })

/** A callback in which the provider reports this error. */
const refusedWith =
  (error: string): Cause =>
  async ({ browser }, headers) =>
    browser.get(withParameters(await startLogin(browser), { code: undefined, error }), { headers })

const exchangeWith =
  (fault: Fault): Cause =>
  async ({ browser, idp }, headers) => {
    const back = await startLogin(browser)
    idp.fail('token', fault)
    return browser.get(back, { headers })
  }

/**
 * Each case sends a request that causes one kind of error. A test may run a case twice on the same server. The statuses of all errors
 * are in test/docs/openapi.test.ts.
 */
const errors: readonly (readonly [what: string, status: number, error: string, cause: Cause])[] = [
  ['a login that the user denied', 403, 'access_denied', refusedWith('access_denied')],
  ['a code exchange with a server error', 502, 'provider_invalid_response', exchangeWith(faults.html(500))],
  ['a provider that cannot be reached', 504, 'provider_unreachable', exchangeWith(faults.reset())],
  ['a request of another site', 403, 'cross_site_request', asking(guarded, { 'sec-fetch-site': 'cross-site' })],
  [
    'a form for an unknown route',
    404,
    'not_found',
    ({ browser }, headers) => browser.request('POST', '/api/auth/nothing', { headers, form: { a: 'b' } })
  ]
]

// Text that would tell an outsider about the code of the server or the messages of its provider.
const internals =
  /node_modules|\.[jt]s:\d|\n\s+at |[a-z]Error\b|127\.0\.0\.1|ECONN|[Kk]oa\b|A fault|maintenance|<script(?! type)/

function assertSafe(t: ExecutionContext, { headers, text }: BrowserResponse, what: string) {
  t.like(headers, { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }, what)
  t.regex(String(headers.vary), /\bAccept\b/, what)
  t.is(headers['access-control-allow-origin'], undefined, what)
  t.notRegex(text(), internals, what)
  t.regex(String(headers['x-request-id']), /^[0-9a-f-]{36}$/, what)
}

for (const [what, status, error, cause] of errors) {
  test(`${what} is ${status}, as JSON for programs and as a page for users`, async t => {
    const server = await startTestServer(t)
    const json = await cause(server, asProgram)
    t.is(json.statusCode, status)
    t.is(json.headers['content-type'], 'application/json; charset=utf-8')
    const { error_description, ...rest } = json.json<Record<string, string>>()
    t.deepEqual(rest, { error, request_id: String(json.headers['x-request-id']) })
    t.regex(error_description ?? '', /^[A-Z].+\.$/)
    assertSafe(t, json, 'JSON')

    server.clock.advanceSeconds(10)
    const page = await cause(server, asPerson)
    t.is(page.statusCode, status)
    t.is(page.headers['content-type'], 'text/html; charset=utf-8')
    t.regex(page.text(), new RegExp(`<code>${status} ${error}</code>`))
    const id = page.headers['x-request-id']
    const isLogged = server.logs.find(({ request_id }) => request_id === id) !== undefined
    t.is(page.text().includes(`<code>${id}</code>`), isLogged, 'the page has the request id if a log line has it')
    t.regex(page.text(), /href="\/(api\/auth\/login)?"/, 'the page has a link to sign in or to the start page')
    assertSafe(t, page, 'page')
    assertSealedOff(t, page)
  })
}

test('a 404 page links to the start page only if the start page exists', async t => {
  const offered = async (files: Record<string, string>) => {
    const wwwroot = await tempFolder(t, files)
    const { browser } = await startTestServer(t, { settings: { wwwroot } })
    return (await browser.get('/nothing-here', { headers: asPerson })).text().includes('Go to the start page')
  }
  t.true(await offered({ 'index.html': '' }))
  t.false(await offered({ 'other.html': '' }))
})

/**
 * Asserts that the page loads nothing, runs only its script, cannot be framed by other sites, and does not send its URL, which has a code and a
 * state, to others.
 */
function assertSealedOff(t: ExecutionContext, { headers, text }: BrowserResponse) {
  const policy = String(headers['content-security-policy']).split('; ')
  const script = createHash('sha256').update(pageScript).digest('base64')
  for (const directive of ["default-src 'none'", "frame-ancestors 'self'", `script-src 'sha256-${script}'`]) {
    t.true(policy.includes(directive), directive)
  }
  t.false(policy.some(directive => /unsafe|https?:|\*/.test(directive)))
  t.is(headers['referrer-policy'], 'no-referrer')
  const markup = text().replace(`<script type="module">${pageScript}</script>`, '')
  t.notRegex(markup, /<(script|img|iframe|object|embed|base)|@import|url\(|\son\w+=/i)
  const addresses = [...text().matchAll(/(?:href|src)="([^"]*)"/g)].map(([, address = '']) => address)
  for (const address of addresses) t.regex(address, /^($|\/(?!\/)|data:image\/svg)/)
}

test('the Accept header determines whether an error is JSON or a page', async t => {
  const { browser } = await startTestServer(t)
  for (const path of ['/missing', '/api/auth/nothing', '/api/auth/callback']) {
    await assertCases(t, 'test/web/errors/accept.txt', async accept => {
      const { headers } = await browser.get(path, { headers: { accept: accept === 'no header' ? undefined : accept } })
      return String(headers['content-type'])
    })
  }
})

test('an error page reloads itself only if a user opened it by GET', async t => {
  const { browser, clock, idp } = await startWithRoute(t, 'single', () => {})
  await signIn(browser)
  clock.advanceSeconds(3600)
  idp.failWhen('token', () => faults.tooManyRequests(7))
  const page = await browser.get(customRoute, { headers: asPerson })
  t.is(page.statusCode, 503)
  t.like(page.headers, { refresh: undefined, 'retry-after': '7' })
  t.true(page.text().includes('<noscript><meta http-equiv="refresh" content="7"></noscript>'))
  t.regex(page.text(), /tries again by itself in 7 seconds/)
  assertSealedOff(t, page)
  const form = await browser.request('POST', customRoute, { headers: asPerson, form: { a: 'b' } })
  const json = await browser.get(customRoute, { headers: asProgram })
  for (const { statusCode, headers, text } of [form, json]) {
    t.deepEqual([statusCode, headers.refresh], [503, undefined])
    t.notRegex(text(), /by itself|http-equiv="refresh"/)
  }
})

test('a form that was processed, or may have been, is not sent again: the page says so, and leads back to the form', async t => {
  let error: Error = new StoreUnavailableError('redis')
  const { browser } = await startWithRoute(t, 'single', () => {
    throw error
  })
  await signIn(browser)
  const send = async (referer?: string) =>
    (await browser.request('POST', customRoute, { headers: { ...asPerson, referer }, form: { a: 'b' } })).text()
  for (error of [error, new Error('after the work'), httpError(503, true)]) {
    const page = await send(`${publicOrigin}/form?id=7`)
    t.regex(page, /<h1>Your form may have been processed<\/h1>/)
    t.notRegex(page, /try again|sign in/i)
    t.deepEqual(page.match(/<a [^>]*>[^<]*/g), [
      '<a class="button" href="/form?id=7">Back to the form',
      '<a class="button second" href="/">Go to the start page'
    ])
    t.deepEqual((await send('https://other.example/form')).match(/<a [^>]*>/g), ['<a class="button" href="/">'])
  }
  error = httpError(409, true)
  t.notRegex(await send(), /may have been processed/)
})

test('a form that a handler without requireTokens got may have been processed, even if the handler responds with 503', async t => {
  let status = 503
  const fail = () => {
    throw httpError(status, true)
  }
  const { browser } = await startWithRoute(t, 'single', fail, (_ctx, next) => next())
  for (status of [503, 500, 401]) {
    const page = (await browser.request('POST', customRoute, { headers: asPerson, form: { a: 'b' } })).text()
    t.is(page.includes('<h1>Your form may have been processed</h1>'), status >= 500)
    t.notRegex(page, /Nothing was saved/)
  }
})

/** Loads a page again whenever it says so, as a browser without scripts does. Returns the seconds between the loads. */
async function intervalsOf({ browser, clock }: Pick<TestServer, 'browser' | 'clock'>, path: string, loads: number) {
  const intervals: number[] = []
  while (intervals.length < loads) {
    const seconds = Number(refreshOf(await browser.navigate(path)))
    intervals.push(seconds)
    clock.advanceSeconds(seconds)
  }
  return intervals
}

test('without scripts, the page of an outage loads itself again less and less often, whether somebody is signed in or not', async t => {
  const server = await startDiscovered(t)
  const { browser, clock, idp } = server
  const growing = [1, 1, 1, 2, 3, 4, 6, 9, 14, 21, 31, 47, 60, 60]
  idp.failWhen('discovery', () => faults.tooManyRequests(1))
  t.deepEqual(await intervalsOf(server, '/api/auth/login?return_to=/a%3Fb', 14), growing)
  clock.advanceSeconds(120)
  t.deepEqual(await intervalsOf(server, '/api/auth/login', 2), [1, 1], 'this is another outage')
  idp.heal()
  await signIn(browser)
  clock.advanceSeconds(3600)
  idp.failWhen('token', () => faults.tooManyRequests(1))
  t.deepEqual(await intervalsOf(server, guarded, 14), growing)
  for (const value of ['x', '-1e300', 'Infinity', '9'.repeat(400)]) {
    browser.cookies.set('platform_session_outage', value)
    t.regex(refreshOf(await browser.navigate(guarded)) ?? '', /^([1-9]|60)$/, value)
  }
  t.deepEqual((await browser.fetch(guarded, { headers: asProgram })).setCookies, [])
})

test('the error page repeats nothing from the URL', async t => {
  const { browser } = await startTestServer(t)
  const headers = { ...asPerson, 'user-agent': 'mark-in-header', referer: 'https://mark-in-header.example' }
  for (const path of [
    '/mark-in-path?mark-in-query=1',
    '/api/auth/mark-in-path',
    '/api/auth/callback?code=mark-in-code&state=mark-in-state&mark-in-query=1'
  ]) {
    const page = await browser.get(path, { headers })
    t.true(page.statusCode >= 400)
    t.notRegex(page.text(), /mark-in-/, path)
  }
})

test('an unexpected exception is a 500 with a general message, and only the log has the details', async t => {
  const { browser, logs } = await startWithRoute(t, 'single', () => {
    throw new Error('the database password is hunter2')
  })
  await signIn(browser)
  for (const headers of [asProgram, asPerson]) {
    const response = await browser.get(customRoute, { headers })
    t.is(response.statusCode, 500)
    t.notRegex(response.text(), /hunter2|password/)
    t.notRegex(response.text(), internals)
    const line = failureOf(logs, response)
    t.is(line?.level, 'error')
    t.regex(JSON.stringify(line), /hunter2.*errors\.test/s)
  }
})

/** The log line about the failure of this request. */
function failureOf(logs: Pick<TestServer['logs'], 'all'>, { headers }: BrowserResponse) {
  return logs.all('request_failed').find(({ request_id }) => request_id === headers['x-request-id'])
}

const fault = [500, 'server_error', 'Something went wrong on this server.'] as const
const ofJson = { status: 400, body: '{"a"' }
const thrown: Readonly<
  Record<string, readonly [error: unknown, status: number, code: string, description: string, headers?: object]>
> = {
  'an HTTP error with a message': [httpError(409, true), 409, 'conflict', 'hunter2'],
  'an HTTP error that hides its message': [httpError(400, false), 400, 'invalid_request', 'Bad Request.'],
  'a 401 of a handler': [httpError(401, true), 401, 'unauthorized', 'hunter2'],
  'a 403 of a handler': [httpError(403, false), 403, 'forbidden', 'Forbidden.'],
  'a 404 with a message': [httpError(404, true), 404, 'not_found', 'hunter2'],
  'a 404 without a message': [httpError(404, true, 'Not Found'), 404, 'not_found', 'There is nothing at this URL.'],
  'a 503 with a message': [httpError(503, true), 503, 'temporarily_unavailable', 'hunter2'],
  'a 502 without a message': [httpError(502, false), 502, 'server_error', 'Bad Gateway.'],
  'an unregistered status': [httpError(499, false), 499, 'invalid_request', 'Bad Request.'],
  'the status of an HTTP client': [{ status: 401, message: 'hunter2' }, ...fault],
  'an error with a response': [Object.assign(new Error('hunter2'), { status: 404, statusCode: 404 }), ...fault],
  'a status as a string': [httpError('400', true), ...fault],
  'a status that is no error': [httpError(302, true), ...fault],
  'an invalid body': [Object.assign(new SyntaxError('hunter2'), ofJson), 400, 'invalid_request', 'Bad Request.'],
  'another error with a body': [Object.assign(new Error('hunter2'), ofJson), ...fault],
  'no error at all': [undefined, ...fault],
  headers: [
    httpError(429, true, 'slow down', {
      ...{ 'Retry-After': 7, 'X-Limit': '10', 'Set-Cookie': 'a=b', Connection: 'close', 'Content-Type': 'text/html' },
      'Set-Cookie2': 'a=b',
      ...{ 'content-security-policy': 'x', 'Cache-Control': 'public', 'X-Content-Type-Options': 'none' },
      ...{ 'X-Broken': 'a\r\nb', 'X Broken': 'a', 'X-Object': {} }
    }),
    429,
    'too_many_requests',
    'slow down',
    {
      'retry-after': '7',
      'x-limit': '10',
      'set-cookie': undefined,
      'set-cookie2': undefined,
      'content-type': 'application/json; charset=utf-8',
      'content-security-policy': undefined,
      'cache-control': 'no-store',
      connection: 'keep-alive',
      'x-content-type-options': 'nosniff',
      'x-broken': undefined,
      'x-object': undefined
    }
  ]
}

/** An error as http-errors creates it. */
function httpError(status: number | string, expose: boolean, message = 'hunter2', headers?: object): Error {
  return Object.assign(new Error(message), { status, statusCode: status, expose, ...(headers && { headers }) })
}

test('an error of a handler decides the status only if it is an HTTP error', async t => {
  let error: unknown
  const { browser, logs } = await startWithRoute(t, 'single', () => {
    throw error
  })
  await signIn(browser)
  for (const [what, [thrownError, status, code, description, headers]] of Object.entries(thrown)) {
    error = thrownError
    for (const method of ['GET', 'POST']) {
      const response = await browser.request(method, customRoute, { headers: asProgram })
      t.is(response.statusCode, status, what)
      t.like(response.json(), { error: code, error_description: description }, what)
      if (headers) t.like(response.headers, headers, what)
      const line = failureOf(logs, response)
      if (status < 500) t.is(line, undefined, what)
      else t.like(line, { status, method, path: customRoute, executed: true }, what)
      if (status === 500 && error !== undefined) t.regex(JSON.stringify(line), /hunter2/, what)
    }
  }
})
