import test from 'ava'
import { replacementOf } from '#src/config/renamed.js'
import { settingKeys, settingOf } from '#src/config/settings.js'
import { carries } from '../helpers/messages.js'
import { load, refuses } from './given.js'

const configFile = 'x.yaml'

for (const [yaml, ...problems] of [
  ['session: { maxAgeSeconds: 60 }', 'session.maxAgeSeconds replaced session.inactivityTimeout.'],
  ['redisUrl: redis://localhost', 'redisUrl replaced redis.url.'],
  [
    'proxy: { routes: [], maxBodyBytes: 1 }',
    'proxy.routes replaced apiProxy.rules.',
    'proxy.maxBodyBytes replaced apiProxy.maxBody.'
  ],
  ['pages: { accent: "#123" }', 'pages.accent replaced branding.color.'],
  ['pages: { hunter2: 1 }', 'pages.hunter2 not a setting.'],
  ['keepAliveSeconds: 5', 'keepAliveSeconds replaced keepAlive.']
] as const) {
  test(`an old name in a settings file is an error that names the new one: ${yaml}`, t =>
    refuses(t, { files: { [configFile]: yaml }, configFile }, ...problems))
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
  test(`the old variable ${name} is an error that names the new one`, t =>
    refuses(t, { env: { [name]: 'x' } }, `${name} replaced ${replacement}.`))
}

test('an old variable whose name has not changed is still valid', async t => {
  const { warnings, config } = await load(t, { env: { PLATFORM_TIMEOUT: '5', INTERNAL_TOKEN_SCOPES: 'a:b' } })
  t.is(config.platform.timeoutSeconds, 5)
  t.notRegex(JSON.stringify(warnings), /replaced/)
})

for (const [flag, replacement] of [
  ['--proxy', '--api-proxy'],
  ['--internal-scopes', '--internal-token-scopes'],
  ['--metrics-port', '--metrics-address'],
  ['--prompt', 'the parameter prompt of platform.authorizationParams']
] as const) {
  test(`the old flag ${flag} has a replacement`, t => {
    carries(t, replacementOf(flag), `replaced ${replacement}`)
  })
}

test('no current name counts as an old one', t => {
  for (const key of settingKeys) {
    const { env, flag = '' } = settingOf(key)
    t.deepEqual([key, env, flag.replace(/ .*/, '')].map(replacementOf), [undefined, undefined, undefined], key)
  }
})
