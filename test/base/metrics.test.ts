import test from 'ava'
import { faults } from '../helpers/hostile-idp/index.js'
import { signIn, startTestServer, type TestServer } from '../helpers/server.js'

async function scrape({ server }: TestServer, path = '/metrics') {
  const response = await fetch(`http://127.0.0.1:${server.metricsPort}${path}`)
  return { status: response.status, headers: response.headers, text: await response.text() }
}

function sampleOf(text: string, series: string): number {
  const line = text.split('\n').find(line => line.startsWith(`${series} `))
  return line === undefined ? 0 : Number(line.split(' ').at(-1))
}

const settings = { metrics: { address: '127.0.0.1:0' } }

test('the metrics count logins, callbacks, refreshes, provider calls, sessions and requests', async t => {
  const started = await startTestServer(t, { mode: 'dual', settings })
  const { browser, clock, idp } = started
  await signIn(browser)
  await browser.navigate('/api/auth/callback?code=a&state=forged')
  const old = browser.clone()
  clock.advanceSeconds(3600)
  await browser.fetch('/api/auth/token')
  await old.fetch('/api/auth/token')
  idp.fail('userinfo', faults.status(500), faults.status(500))
  await browser.fetch('/api/auth/profile')
  browser.cookies.set('platform_session', 'nonsense')
  await browser.fetch('/api/auth/token')
  await browser.get('/nowhere/at/all')
  await browser.get('/')
  await old.navigate('/api/auth/logout')

  const { status, headers, text } = await scrape(started)
  t.is(status, 200)
  t.regex(String(headers.get('content-type')), /^text\/plain/)
  const expected = {
    platform_auth_logins_started_total: 1,
    'platform_auth_callbacks_total{outcome="succeeded"}': 1,
    'platform_auth_callbacks_total{outcome="state_mismatch"}': 1,
    'platform_auth_refreshes_total{outcome="succeeded"}': 1,
    'platform_auth_provider_request_duration_seconds_count{endpoint="token",code="200"}': 4,
    'platform_auth_provider_request_duration_seconds_count{endpoint="userinfo",code="500"}': 1,
    'platform_auth_session_cookies_total{outcome="unreadable"}': 1,
    platform_auth_session_cookies_with_previous_secret_total: 0,
    platform_auth_session_cookie_bytes_count: 3,
    'platform_auth_http_request_duration_seconds_count{route="/api/auth/token",code="200"}': 2,
    'platform_auth_http_request_duration_seconds_count{route="/api/auth/token",code="401"}': 1,
    'platform_auth_http_request_duration_seconds_count{route="other",code="404"}': 1,
    'platform_auth_http_request_duration_seconds_count{route="static",code="200"}': 1,
    'platform_auth_logouts_total{by="browser"}': 1,
    platform_auth_requests_in_flight: 0,
    platform_auth_cached_sessions: 1,
    platform_auth_provider_pause_seconds: 0,
    platform_auth_client_rejections: 0,
    'platform_auth_queued_requests{queue="userinfo"}': 0
  }
  const counted = Object.fromEntries(Object.keys(expected).map(series => [series, sampleOf(text, series)]))
  t.deepEqual(counted, expected)
  t.false(text.includes('\nplatform_auth_redis_up '), 'there is no Redis')
  t.true(sampleOf(text, 'process_resident_memory_bytes') > 0)
})

test('the metrics are served only on the port for metrics, which serves nothing else and is not opened without metrics.address', async t => {
  const started = await startTestServer(t, { settings })
  t.is((await scrape(started, '/')).status, 404)
  t.is((await scrape(started, '/metrics?x=1')).status, 200)
  t.is((await scrape(started, '/metric')).status, 404)
  const head = await fetch(`http://127.0.0.1:${started.server.metricsPort}/metrics`, { method: 'HEAD' })
  t.deepEqual([head.status, await head.text()], [200, ''])
  t.is((await started.browser.get('/metrics')).statusCode, 404)
  const { server } = await startTestServer(t)
  t.is(server.metricsPort, undefined)
})

test('labels of metrics contain no text that a client or the provider sends', async t => {
  const started = await startTestServer(t, { settings })
  const { browser, idp } = started
  idp.failWhen('userinfo', () => faults.error('made-up-error', 418))
  await signIn(browser)
  await browser.fetch('/api/auth/profile')
  for (let n = 0; n < 20; n++) {
    await browser.get(`/page-${n}`)
    await browser.get(`/api/auth/route-${n}`)
    await browser.get(`/api/auth/callback?state=s${n}&error=error_${n}`)
  }
  const { text } = await scrape(started)
  t.notRegex(text, /page-|route-|error_\d|made-up/)
  t.true(text.split('\n').length < 400, `${text.split('\n').length} lines of metrics`)
})

test('the metrics count the session cookies that are encrypted with a previous secret', async t => {
  const [first, second] = ['1'.repeat(64), '2'.repeat(64)] as const
  const before = await startTestServer(t, { settings: { session: { secret: first } } })
  await signIn(before.browser)
  const secrets = { secret: second, previousSecrets: [first] }
  const after = await startTestServer(t, { settings: { ...settings, session: secrets }, idp: before.idp })
  const { value } = before.browser.cookies.all().find(({ name }) => name === 'platform_session') ?? { value: '' }
  await after.browser.get('/api/auth/profile', { headers: { cookie: `platform_session=${value}` } })
  const { text } = await scrape(after)
  t.is(sampleOf(text, 'platform_auth_session_cookies_total{outcome="valid"}'), 1)
  t.is(sampleOf(text, 'platform_auth_session_cookies_with_previous_secret_total'), 1)
})
