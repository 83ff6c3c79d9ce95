import test from 'ava'
import { replacementOf } from '#src/config/renamed.js'
import { settingKeys, settingOf } from '#src/config/settings.js'
import { linesOf, load, problemsOf } from './given.js'

const configFile = 'x.yaml'

for (const [yaml, ...lines] of [
  ['session: { maxAgeSeconds: 60 }', 'session.maxAgeSeconds was replaced by session.inactivityTimeout.'],
  ['redisUrl: redis://localhost', 'redisUrl was replaced by redis.url.'],
  [
    'proxy: { routes: [], maxBodyBytes: 1 }',
    'proxy.routes was replaced by apiProxy.rules.',
    'proxy.maxBodyBytes was replaced by apiProxy.maxBody.'
  ],
  ['pages: { accent: "#123" }', 'pages.accent was replaced by branding.color.'],
  ['pages: { hunter2: 1 }', 'pages.hunter2 is not a setting.'],
  ['keepAliveSeconds: 5', 'keepAliveSeconds was replaced by keepAlive.']
] as const) {
  test(`an old name in a settings file is an error that names the new one: ${yaml}`, async t => {
    t.deepEqual(linesOf(await problemsOf(t, { files: { [configFile]: yaml }, configFile })), lines)
  })
}

for (const [name, replacement] of [
  ['PLATFORM_AUTH_SESSION_MAX_AGE', 'PLATFORM_AUTH_SESSION_INACTIVITY_TIMEOUT'],
  ['PLATFORM_AUTH_COOKIE_NAME', 'PLATFORM_AUTH_SESSION_COOKIE_NAME'],
  ['PLATFORM_AUTH_REFRESH_MARGIN', 'PLATFORM_AUTH_REFRESH_BEFORE_EXPIRY'],
  ['PLATFORM_AUTH_PROXY_ROUTES', 'PLATFORM_AUTH_API_PROXY_RULES'],
  ['PLATFORM_AUTH_LOG_PRETTY', 'LOG_FORMAT'],
  ['PLATFORM_AUTH_LOG_REQUESTS', 'LOG_REQUESTS'],
  ['REDIS_TLS_CA_FILE', 'REDIS_CA_FILE']
] as const) {
  test(`the old variable ${name} is an error that names the new one`, async t => {
    const problems = await problemsOf(t, { env: { [name]: 'x' } })
    t.deepEqual(problems, [{ key: name, source: `variable ${name}`, message: `was replaced by ${replacement}.` }])
  })
}

test('an old variable whose name has not changed is still valid', async t => {
  const { warnings, config } = await load(t, { env: { PLATFORM_TIMEOUT: '5', INTERNAL_TOKEN_SCOPES: 'a:b' } })
  t.is(config.platform.timeoutSeconds, 5)
  t.notRegex(linesOf(warnings).join('\n'), /replaced/)
})

for (const [flag, replacement] of [
  ['--proxy', '--api-proxy'],
  ['--internal-scopes', '--internal-token-scopes'],
  ['--metrics-port', '--metrics-address'],
  ['--prompt', 'the parameter prompt of platform.authorizationParams']
] as const) {
  test(`the old flag ${flag} has a replacement`, t => {
    t.is(replacementOf(flag), `was replaced by ${replacement}.`)
  })
}

test('no current name counts as an old one', t => {
  for (const key of settingKeys) {
    const { env, flag = '' } = settingOf(key)
    t.deepEqual([key, env, flag.replace(/ .*/, '')].map(replacementOf), [undefined, undefined, undefined], key)
  }
})
