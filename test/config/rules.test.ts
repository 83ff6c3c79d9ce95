// The internal token has the wide scope and stays on the server. In dual mode pages also get a public token, which has
// only the public scopes. In single mode there is only one token, and it stays on the server.
import test from 'ava'
import { keysAndSourcesOf, keysOf, linesOf, load, problemsOf } from './given.js'

const dual = { PLATFORM_AUTH_MODE: 'dual' }

test('in dual mode public scopes that are not among the internal scopes are refused', async t => {
  const env = { ...dual, INTERNAL_TOKEN_SCOPES: 'data:read', PUBLIC_TOKEN_SCOPES: 'data:read viewables:read' }
  const problems = await problemsOf(t, { env })
  t.is(problems.length, 1)
  t.is(problems[0]?.key, 'platform.publicScopes')
  t.is(problems[0]?.source, 'variable PUBLIC_TOKEN_SCOPES')
  t.regex(problems[0]?.message ?? '', /^contains viewables:read, which the internal token lacks\. .*\(data:read\)\.$/)
})

test('in dual mode the default public scopes must be among the given internal scopes', async t => {
  const [problem] = await problemsOf(t, { env: { ...dual, INTERNAL_TOKEN_SCOPES: 'data:read' } })
  t.is(problem?.source, 'default')
})

test('in dual mode equal internal and public scopes get a warning, in any order', async t => {
  const env = { ...dual, INTERNAL_TOKEN_SCOPES: 'a b', PUBLIC_TOKEN_SCOPES: 'b a' }
  const { warnings } = await load(t, { env })
  t.deepEqual(keysOf(warnings), ['platform.publicScopes'])
})

test('in dual mode public scopes that are a part of the internal ones get no warning', async t => {
  const { warnings } = await load(t, { env: { ...dual, INTERNAL_TOKEN_SCOPES: 'a b', PUBLIC_TOKEN_SCOPES: 'b' } })
  t.deepEqual(warnings, [])
})

test('scopes of the other mode are not compared, but get a warning that they have no effect', async t => {
  const { warnings } = await load(t, { env: { INTERNAL_TOKEN_SCOPES: 'a', PUBLIC_TOKEN_SCOPES: 'b' } })
  t.deepEqual(linesOf(warnings), [
    'platform.internalScopes has no effect, because mode is single.',
    'platform.publicScopes has no effect, because mode is single.'
  ])
  const inDual = await load(t, { env: { ...dual, PLATFORM_SCOPES: 'a' } })
  t.deepEqual(keysOf(inDual.warnings), ['platform.scopes'])
})

test('session.store redis is refused without redisUrl, and accepted with it', async t => {
  const env = { PLATFORM_AUTH_SESSION_STORE: 'redis' }
  const problems = await problemsOf(t, { env })
  t.is(problems.length, 1)
  t.is(problems[0]?.key, 'session.store')
  t.is(problems[0]?.source, 'variable PLATFORM_AUTH_SESSION_STORE')
  t.regex(
    problems[0]?.message ?? '',
    /^is redis, but redisUrl is not set\. Set redisUrl, .* or set session\.store to cookie\.$/
  )
  const { config } = await load(t, { env: { ...env, REDIS_URL: 'redis://localhost:6379' } })
  t.is(config.session.store, 'redis')
})

test('a plain http callback URL gets a warning unless it stays on this machine', async t => {
  const warned = await load(t, { env: { PLATFORM_CALLBACK_URL: 'http://app.example.com/api/auth/callback' } })
  t.deepEqual(keysOf(warned.warnings), ['platform.callbackUrl'])
  for (const host of ['localhost', '127.0.0.1:80', '[::1]', 'app.localhost']) {
    const { warnings } = await load(t, { env: { PLATFORM_CALLBACK_URL: `http://${host}/api/auth/callback` } })
    t.deepEqual(warnings, [], host)
  }
})

test('logout at the provider requires an end-session endpoint', async t => {
  const [problem] = await problemsOf(t, { env: { PLATFORM_AUTH_LOGOUT: 'idp', PLATFORM_END_SESSION_ENDPOINT: 'none' } })
  t.is(problem?.key, 'logout')
})

test('logout: revoke without a revocation endpoint gets a warning, and the default logout does not', async t => {
  const env = { PLATFORM_REVOCATION_ENDPOINT: 'none' }
  t.deepEqual((await load(t, { env })).warnings, [])
  t.is((await load(t, { env: { ...env, PLATFORM_AUTH_LOGOUT: 'revoke' } })).warnings[0]?.key, 'logout')
})

test('metrics cannot use the port of the server on the same host', async t => {
  const [problem] = await problemsOf(t, { env: { PLATFORM_AUTH_METRICS_PORT: '8080' } })
  t.is(problem?.key, 'metrics.port')
  const env = { PLATFORM_AUTH_METRICS_PORT: '8080', PLATFORM_AUTH_HOST: '10.0.0.1' }
  t.is((await load(t, { env })).config.metrics.port, 8080)
  t.is((await load(t, { env: { PORT: '0', PLATFORM_AUTH_METRICS_PORT: '0' } })).config.metrics.port, 0)
})

test('a grace period shorter than a refresh may take gets a warning', async t => {
  const warned = async (env: Record<string, string>) => keysAndSourcesOf((await load(t, { env })).warnings)
  const single = { PLATFORM_AUTH_MODE: 'single' }
  for (const [times, expected] of [
    [{ PLATFORM_AUTH_SHUTDOWN_GRACE: '10' }, []],
    [{ PLATFORM_AUTH_SHUTDOWN_GRACE: '9' }, ['shutdown.graceSeconds (variable PLATFORM_AUTH_SHUTDOWN_GRACE)']],
    [{ PLATFORM_TIMEOUT: '25' }, []],
    [{ PLATFORM_TIMEOUT: '26' }, ['shutdown.graceSeconds (default)']]
  ] as const) {
    t.deepEqual(await warned({ ...single, ...times }), expected, `single ${JSON.stringify(times)}`)
  }
  for (const [times, expected] of [
    [{}, []],
    [{ PLATFORM_AUTH_SHUTDOWN_GRACE: '20' }, []],
    [{ PLATFORM_AUTH_SHUTDOWN_GRACE: '19' }, ['shutdown.graceSeconds (variable PLATFORM_AUTH_SHUTDOWN_GRACE)']],
    [{ PLATFORM_TIMEOUT: '12' }, []],
    [{ PLATFORM_TIMEOUT: '13' }, ['shutdown.graceSeconds (default)']]
  ] as const) {
    t.deepEqual(await warned({ ...dual, ...times }), expected, `dual ${JSON.stringify(times)}`)
  }
  const [warning] = (await load(t, { env: { ...dual, PLATFORM_TIMEOUT: '30' } })).warnings
  t.regex(warning?.message ?? '', /^is 25, but a refresh may take 60 seconds \(two calls of platform\.timeoutSeconds\)/)
})

const ISSUER = { PLATFORM_ISSUER: 'https://idp.example' }
const backChannel = { PLATFORM_BACK_CHANNEL_LOGOUT: 'true' }

test('back-channel logout is refused without an issuer, and without the scope openid', async t => {
  const [withoutIssuer, ...others] = await problemsOf(t, { env: { ...backChannel, PLATFORM_SCOPES: 'openid a' } })
  t.deepEqual(others, [])
  t.is(withoutIssuer?.key, 'platform.backChannelLogout')
  t.regex(withoutIssuer?.message ?? '', /needs the issuer.*Set platform\.issuer\.$/)
  const [withoutOpenid] = await problemsOf(t, { env: { ...backChannel, ...ISSUER, PLATFORM_SCOPES: 'a' } })
  t.regex(withoutOpenid?.message ?? '', /platform\.scopes does not contain openid.*Add openid/)
  const inDual = { ...dual, INTERNAL_TOKEN_SCOPES: 'a b', PUBLIC_TOKEN_SCOPES: 'b' }
  const [withoutInternal] = await problemsOf(t, { env: { ...backChannel, ...ISSUER, ...inDual } })
  t.regex(withoutInternal?.message ?? '', /platform\.internalScopes does not contain openid/)
})

test('back-channel logout is accepted with an issuer and the scope openid', async t => {
  const { config } = await load(t, { env: { ...backChannel, ...ISSUER, PLATFORM_SCOPES: 'openid a' } })
  t.true(config.platform.backChannelLogout)
})
