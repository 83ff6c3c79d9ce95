// Log lines name their request, and no part of a request or of the provider can break or forge a log line.
import test, { type ExecutionContext } from 'ava'
import { eventually } from '../../helpers/eventually.js'
import { faults } from '../../helpers/hostile-idp/index.js'
import { askRaw, sendRaw } from '../../helpers/raw.js'
import { openCallback, signIn, startLogin, startTestServer, type TestServer } from '../../helpers/server.js'
import { words } from '../../helpers/words.js'
import { startSignedIn, withParameters } from '../support.js'

test('every log line of a request has its request id, even if it is written after the response', async t => {
  const { browser, clock, logs } = await startTestServer(t, { mode: 'dual' })
  const headers = (id: string) => ({ headers: { 'x-request-id': id } })
  const login = await browser.navigate('/api/auth/login', headers('login-1'))
  const back = (await browser.navigate(String(login.headers.location))).headers.location
  await browser.navigate(String(back), headers('callback-1'))
  clock.advanceSeconds(3600)
  await browser.fetch('/api/auth/token', headers('token-1'))
  await browser.navigate('/api/auth/logout', headers('logout-1'))
  await eventually(() => logs.first('refresh_token_revoked') !== undefined)
  const events = logs.entries
    .filter(({ event }) => event !== 'request')
    .map(({ event, request_id }) => [event, request_id])
  t.deepEqual(events, [
    ['login_started', 'login-1'],
    ['login_succeeded', 'callback-1'],
    ['refresh_succeeded', 'token-1'],
    ['logout_succeeded', 'logout-1'],
    ['refresh_token_revoked', 'logout-1']
  ])
})

// W3C Trace Context, sections 3.2 and 4.3.
test('every log line has the trace id of a valid traceparent header, and a malformed header is ignored', async t => {
  const { browser, logs } = await startTestServer(t)
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
  const valid = words`
    00-${trace}-00f067aa0ba902b7-01 00-${trace}-00f067aa0ba902b7-00 cc-${trace}-00f067aa0ba902b7-01-what-comes-later`
  const malformed = words`
    ff-${trace}-00f067aa0ba902b7-01 00-00000000000000000000000000000000-00f067aa0ba902b7-01 00-${trace}-0000000000000000-01
    00-${trace.toUpperCase()}-00f067aa0ba902b7-01 00-${trace}-00f067aa0ba902b7-01x 00-${trace.slice(1)}-00f067aa0ba902b7-01
    x00-${trace}-00f067aa0ba902b7-01 00-${trace}-00f067aa0ba902b7 nonsense`
  for (const [index, traceparent] of [...valid, ...malformed, ''].entries()) {
    const line = () => logs.find(({ request_id }) => request_id === `trace-${index}`)
    await browser.get('/', { headers: { traceparent, 'x-request-id': `trace-${index}` } })
    await eventually(() => line() !== undefined)
    t.is(line()?.trace_id, valid.includes(traceparent) ? trace : undefined, traceparent)
  }
})

// biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for these characters
const controlCharacters = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/

/** Asserts that each log line is valid JSON with one line feed at its end and without other control characters. */
function assertCleanLines(t: ExecutionContext, { logs }: TestServer): void {
  t.true(logs.lines.length > 0)
  for (const line of logs.lines) {
    t.true(line.endsWith('}\n'))
    t.notRegex(line.slice(0, -1), controlCharacters)
    t.notThrows(() => JSON.parse(line))
  }
}

const forged = '{"level":30,"event":"login_succeeded","msg":"forged"}'
const nasty = [
  ...[`\r\n${forged}\r\n`, `\n${forged}\n`, '"},{"', '%s %o %j', '\0', '\b\b\b', '\u2028\u2029'],
  ...['\x1b[2J\x1b[31mred', '\x1b]0;title\x07', '\x9b31m']
]

test('no part of a request can break or forge a log line', async t => {
  const started = await startTestServer(t, { settings: { log: { trustForwardedFor: 1 } } })
  const { server, logs } = started
  const headerNames = words`
    User-Agent X-Request-Id traceparent X-Forwarded-For Referer Cookie Accept Origin Sec-Fetch-Site`
  for (const text of nasty) {
    const encoded = encodeURIComponent(text)
    const latin1 = Buffer.from(text).toString('latin1')
    for (const target of words`
      /${encoded} /?${encoded} /api/auth/${encoded} /api/auth/callback?state=${encoded}&code=${encoded}`) {
      await askRaw(server.port, target)
      const decoded = decodeURIComponent(target)
      const request = `GET ${decoded} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`
      await sendRaw(server.port, request, { timeoutMs: 300 })
    }
    for (const name of headerNames) {
      const request = `GET /api/auth/login HTTP/1.1\r\nHost: localhost\r\n${name}: ${latin1}\r\nConnection: close\r\n\r\n`
      await sendRaw(server.port, request, { timeoutMs: 300 })
    }
  }
  assertCleanLines(t, started)
  t.is(logs.first('login_succeeded'), undefined)
})

test('no parameter that the provider sends through the browser can break or forge a log line', async t => {
  const started = await startTestServer(t)
  const { browser, idp, logs } = started
  for (const text of nasty) {
    idp.settings.login = { error: 'access_denied', errorDescription: text }
    await openCallback(browser, await startLogin(browser))
    idp.settings.login = { error: text }
    await openCallback(browser, await startLogin(browser))
    idp.settings.login = {}
    for (const name of ['state', 'code', 'iss', 'error', 'error_uri']) {
      await openCallback(browser, withParameters(await startLogin(browser), { [name]: text }))
    }
  }
  assertCleanLines(t, started)
  t.true(logs.all('login_failed').length >= nasty.length * 5)
  const forged = logs.entries.filter(({ reason }) => typeof reason === 'string' && !/^\w+$/.test(reason))
  t.deepEqual(forged, [])
})

test('no response of the provider can break or forge a log line', async t => {
  const started = await startSignedIn(t)
  const { browser, clock, idp, logs } = started
  for (const text of nasty) {
    const answers = [
      faults.answer({ status: 400, body: { error: text, error_description: text, error_uri: text } }),
      faults.answer({ status: 400, body: { error: 'invalid_scope', error_description: text } }),
      faults.answer({ status: 403, body: { developerMessage: text, errorCode: text, userMessage: text } }),
      faults.answer({ status: 200, body: text }),
      faults.change({ token_type: text }),
      faults.change({ access_token: text }),
      faults.change({ scope: text })
    ]
    for (const answer of answers) {
      clock.advanceSeconds(3600)
      idp.failWhen('token', () => answer)
      await browser.fetch('/api/auth/profile')
      idp.heal()
      idp.failWhen('userinfo', () => answer)
      await browser.fetch('/api/auth/profile')
      idp.heal()
      if (!browser.cookies.value('platform_session')) await signIn(browser)
    }
  }
  assertCleanLines(t, started)
  t.true(logs.all('refresh_failed').length > nasty.length)
  t.false(logs.lines.some(line => line.includes('forged')))
})
