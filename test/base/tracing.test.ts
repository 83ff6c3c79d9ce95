// Traces as a collector receives them, from the program as operators start it.
import test, { type ExecutionContext } from 'ava'
import { createBrowser } from '../helpers/browser.js'
import { attributesOf, type Collector, startCollector } from '../helpers/collector.js'
import { defaultCallbackUrl, publicOrigin } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { freePort } from '../helpers/ports.js'
import { commandWithMovableClock, defaultCommand, environmentFor, startProgram } from '../helpers/program.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { repository } from '../helpers/repository.js'
import { openCallback, signIn, startLogin } from '../helpers/server.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { startUpstream } from '../helpers/upstream.js'

const loginTrace = '0af7651916cd43dd8448eb211c80319c'
const refreshTrace = '4bf92f3577b34da6a3ce929d0e0e4736'
const clientSpan = 'b7ad6b7169203331'

/** The headers of a client whose trace is recorded. */
const continuing = (traceId: string) => ({ traceparent: `00-${traceId}-${clientSpan}-01`, tracestate: 'vendor=1' })

async function start(t: ExecutionContext, env: Record<string, string> = {}, command = defaultCommand) {
  const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
  const program = await startProgram(t, {
    command,
    cwd: await tempFolder(t),
    env: { ...environmentFor(idp, defaultCallbackUrl), PLATFORM_AUTH_MODE: 'dual', ...env }
  })
  const browser = createBrowser(t, { origin: publicOrigin, connectTo: { [publicOrigin]: program.url } })
  return { idp, program, browser }
}

/** The variables that an operator sets. The shorter delay lets the test see the spans soon. */
const exportTo = ({ url }: Pick<Collector, 'url'>) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  OTEL_BSP_SCHEDULE_DELAY: '50'
})

/** @param name a module in test/helpers/programs, which sees or prevents the imports of the program */
const withImport = (name: string) => {
  const module = `${repository}test/helpers/programs/${name}.mjs`
  return [...defaultCommand.slice(0, 1), '--import', module, ...defaultCommand.slice(1)]
}

testWithRedis('a login and a refreshed, proxied request are two traces, and contain no secret', async t => {
  const [collector, redis, upstream] = await Promise.all([startCollector(t), startRedis(t), startUpstream(t)])
  const { idp, program, browser } = await start(
    t,
    {
      ...exportTo(collector),
      REDIS_URL: redis.url,
      PLATFORM_AUTH_API_PROXY_RULES: `GET /api/hubs/** ${upstream.origin}/hubs/**`
    },
    commandWithMovableClock
  )
  // On a slow machine, the connection to Redis takes longer than the server waits for it at the start.
  await eventually(async () => (await browser.get('/readyz')).statusCode === 200)
  const callback = new URL(await startLogin(browser))
  const signedIn = await browser.navigate(callback.href, {
    from: 'http://127.0.0.1',
    headers: continuing(loginTrace)
  })
  t.is(signedIn.statusCode, 302)
  program.signal('SIGUSR2')
  await program.logged('clock_moved')
  const proxied = await browser.fetch('/api/hubs/1?private=question', { headers: continuing(refreshTrace) })
  t.is(proxied.statusCode, 200)

  const login = await collector.received(loginTrace, 'GET /api/auth/callback')
  t.is(login.parentSpanId, clientSpan)
  t.is(login.kind, 2)
  t.deepEqual(attributesOf(login), {
    'http.request.method': 'GET',
    'url.path': '/api/auth/callback',
    'url.scheme': 'http',
    'http.route': '/api/auth/callback',
    'http.response.status_code': 302
  })
  const refreshed = await collector.received(refreshTrace, 'GET /api/hubs/**')
  t.is(attributesOf(refreshed)['http.route'], '/api/hubs/**')
  const loginCalls = ['HMGET', 'EVALSHA', 'provider token', 'provider token', 'EVALSHA']
  t.deepEqual(await collector.childrenOf(login, loginCalls.length), loginCalls)
  const step = ['EVALSHA', 'provider token', 'EVALSHA']
  // Redis refuses the first swap, because only the clock of the server was moved. Its reply corrects the clock.
  const refreshCalls = ['HGET', 'EVALSHA', ...step, ...step, 'upstream GET']
  t.deepEqual(await collector.childrenOf(refreshed, refreshCalls.length), refreshCalls)

  const toProvider = await collector.received(refreshTrace, 'provider token')
  t.is(attributesOf(toProvider)['url.full'], idp.tokenEndpoint)
  t.is(attributesOf(toProvider)['http.response.status_code'], 200)
  const toUpstream = await collector.received(refreshTrace, 'upstream GET')
  const [request] = upstream.requests
  t.deepEqual(request?.headers('traceparent'), [`00-${refreshTrace}-${toUpstream.spanId}-01`])
  t.deepEqual(request?.headers('tracestate'), ['vendor=1'])
  t.is(idp.tokenRequests[0]?.headers.traceparent, undefined)
  t.is((await program.logged('login_succeeded')).trace_id, loginTrace)

  const { 'service.name': name, 'service.version': version, 'process.command_args': args } = collector.resource()
  t.is(name, 'platform-auth-server')
  t.regex(String(version), /^\d+\.\d+\.\d+/)
  t.is(args, undefined, 'the command line may contain a secret')
  const secrets = [...idp.secrets(), ...browser.cookies.all().map(({ value }) => value), callback.search, 'question']
  const sent = collector.bodies.join('\n')
  for (const secret of secrets) t.false(sent.includes(secret), secret)
})

test('the spans of the last requests are sent before the program ends', async t => {
  const collector = await startCollector(t)
  const gatewayPort = await freePort()
  const env = {
    ...exportTo(collector),
    OTEL_BSP_SCHEDULE_DELAY: '3600000',
    OTEL_SERVICE_NAME: 'my-login',
    PLATFORM_AUTH_FORWARD_AUTH_ADDRESS: `127.0.0.1:${gatewayPort}`
  }
  const { idp, program, browser } = await start(t, env)
  idp.fail('token', exchange => exchange.send({ status: 500 }))
  const failed = await openCallback(browser, await startLogin(browser))
  t.is(failed.statusCode, 502)
  await browser.get('/readyz')
  const headers = continuing(refreshTrace)
  t.is((await fetch(`http://127.0.0.1:${gatewayPort}/`, { headers })).status, 401)
  program.signal('SIGTERM')
  t.deepEqual(await program.ended, { code: 0, signal: null })
  // On a busy machine, this process reads what the program has sent only after its end.
  await eventually(() => collector.spans().length >= 5)
  t.deepEqual(
    collector.spans().map(({ name, status }) => [name, status.code ?? 0]),
    [
      ['provider discovery', 0],
      ['GET /api/auth/login', 0],
      ['provider token', 2],
      ['GET /api/auth/callback', 2],
      ['GET forward-auth', 0]
    ]
  )
  const asked = await collector.received(refreshTrace, 'GET forward-auth')
  t.is(attributesOf(asked)['http.response.status_code'], 401)
  t.is(collector.resource()['service.name'], 'my-login')
})

test('without tracing, a client key, back-channel logout and proxy rules, the packages for them are not imported', async t => {
  const env = { OTEL_SERVICE_NAME: 'my-login', OTEL_EXPORTER_OTLP_ENDPOINT: '' }
  const { program, browser } = await start(t, env, withImport('print-imports'))
  await signIn(browser)
  await browser.navigate('/api/auth/logout')
  await browser.request('POST', '/api/auth/backchannel-logout', { form: { logout_token: 'a.b.c' } })
  const imported = program.lines.filter(({ event }) => event === 'imported').map(({ name }) => String(name))
  t.true(imported.includes('koa') && imported.includes('got'))
  const optional = imported.filter(name => name.startsWith('@opentelemetry/') || /^(jose|undici)\b/.test(name))
  t.deepEqual(optional, [])
})

test('without the SDK, the server runs, and a warning says what to install', async t => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }
  const { program, browser } = await start(t, env, withImport('without-sdk'))
  const { level, msg } = await program.logged('tracing_unavailable')
  t.is(level, 'warn')
  t.regex(String(msg), /^OTEL_EXPORTER_OTLP_ENDPOINT is set, but .* Install @opentelemetry\/sdk-node /)
  await signIn(browser)
})

test('if the collector cannot be reached, the log says so once, and the server works and stops in time', async t => {
  const env = { ...exportTo({ url: 'http://127.0.0.1:9' }), OTEL_EXPORTER_OTLP_TIMEOUT: '1500' }
  const { program, browser } = await start(t, env)
  await signIn(browser)
  const { msg } = await program.logged('tracing_problem')
  t.regex(String(msg), /ECONNREFUSED/)
  await signIn(browser)
  program.signal('SIGTERM')
  t.deepEqual(await program.ended, { code: 0, signal: null })
  t.is(program.lines.filter(({ event }) => event === 'tracing_problem').length, 1)
})
