import test from 'ava'
import { checkValue } from '#src/config/check-value.js'
import type { SettingKey } from '#src/config/settings.js'
import { settingOf, writtenValue } from '#src/config/settings.js'
import { carries } from '../helpers/messages.js'
import { accepts, load, refuses } from './given.js'

const varied = 'wG4vT9qLx2ZbN7rKp5YcJ8sHd3MfA6eU'

const accepted: readonly (readonly [SettingKey, ...unknown[]])[] = [
  ['mode', 'single', 'dual'],
  ['port', 0, 80, 65535],
  ['host', '0.0.0.0', '::', '::1', 'localhost', 'fe80::1%eth0', 'host_a.example'],
  ['session.inactivityTimeout', '1s', '24h', '400d'],
  ['session.maxLifetime', '60s', '3650d'],
  ['session.cookieName', 'sid', 'a.b_c-1', 'Http-sid', '__session', '__my_session-1'],
  ['session.secret', varied, 'correct-horse-battery-staple-and-one-more', 'ünïcödé-ßecret-öf-ënough-lëngth-1'],
  ['session.previousSecrets', [], [varied, varied]],
  [
    'platform.clientId',
    'abc',
    'Your+Id/1=',
    'x'.repeat(200),
    'change-management',
    'the-client-id-of-ours',
    'my-client'
  ],
  ['platform.clientSecret', 'short', 'with space', 'the-client-secret-of-ours'],
  [
    'platform.callbackUrl',
    'https://app.example.com/api/auth/callback',
    'https://app.example.com:8443/tools/viewer/api/auth/callback',
    'http://localhost:8080/api/auth/callback',
    'http://[::1]:8080/api/auth/callback',
    'HTTPS://APP.example.com/api/auth/callback',
    'https://app.example.com/api/auth/callback?tenant=a'
  ],
  ['platform.scopes', ['data:read'], ['data:read:urn:adsk/x!']],
  [
    'platform.issuer',
    'https://id.example',
    'https://id.example/tenant/',
    'http://127.0.0.1:9000',
    'http://localhost:1'
  ],
  ['platform.tokenEndpoint', 'https://id.example/token?x=1', 'http://[::1]:80/token'],
  ['platform.revocationEndpoint', 'none', 'https://id.example/revoke'],
  ['platform.endSessionEndpoint', 'none', 'https://id.example/logout'],
  ['platform.clientAuthMethod', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
  ['platform.pkce', true, false],
  ['platform.timeout', '1s', '60s'],
  ['refresh.beforeExpiry', '0s', '60m'],
  ['refresh.jitter', '0s', '25m', '60m'],
  ['profile.cacheTtl', '0s', '30s', '60m'],
  ['access.allow', ['*'], ['@example.com', 'groups=admins']],
  ['access.acr', ['mfa', 'urn:mace:incommon:iap:silver']],
  ['platform.authorizationParams', { max_age: '0' }],
  ['redis.url', 'redis://localhost', 'rediss://user:pass@host:6380/2'],
  ['log.level', 'silent', 'trace'],
  ['metrics.address', ':9090', '127.0.0.1:0', '[::1]:9090', 'localhost:65535', '[fe80::1%eth0]:1']
]

for (const [key, ...values] of accepted) {
  test(`${key} accepts valid values`, t => {
    for (const value of values) {
      const checked = checkValue(key, value)
      t.deepEqual('value' in checked && writtenValue(key, checked.value), value, String(value))
    }
  })
}

const refused: readonly (readonly [SettingKey, ...unknown[]])[] = [
  ['mode', 'both', 'singles', 1, true, null, ['single']],
  ['port', -1, 65536, 80.5, '80', Number.NaN, Number.POSITIVE_INFINITY, true],
  ['host', 'a b', '[::1]', 'http://x', 5],
  ['session.inactivityTimeout', 0, -1, 34_560_001, '401d', 1.5, null],
  ['session.maxLifetime', 59, 315_360_001, '59s', '7 days'],
  [
    'session.cookieName',
    'a b',
    'a;b',
    'a=b',
    'ä',
    'x'.repeat(65),
    '__Secure-sid',
    '__secure-sid',
    '__host-sid',
    '__Host-',
    '__HOST-',
    '__Http-sid',
    '__Host-__Secure-sid',
    5
  ],
  [
    'session.secret',
    'x'.repeat(31),
    varied.slice(1),
    'a'.repeat(64),
    'abcdefgh'.repeat(8),
    'correct-horse-battery,correct-horse-battery,correct!',
    `${varied} ${varied}`,
    `${varied}\n${varied}`,
    'Staple-horse.Horse-staple.staple-horse.4711',
    'q7Rz.mKp2'.repeat(4),
    'q7Rz.mKp2W'.repeat(4).slice(0, 34),
    '0123456789012345678901234567890123',
    'abcdefghijklmnopqrstuvwxyz0123456789',
    'aabbccddaabbccddabcdabcdabcddcba',
    'change-me-to-32-random-characters',
    'a-string-secret-at-least-256-bits-long',
    'your_session_secret_goes_here_please',
    '<SERVER_SESSION_SECRET-replace-this-one>',
    123,
    [varied]
  ],
  [
    'session.previousSecrets',
    ['short'],
    [`${varied} ${varied}`],
    [varied, 'a'.repeat(40)],
    `${varied} password-password-password-pass`,
    5,
    [5]
  ],
  ['platform.clientId', 'a b', 'ä', 'replace-with-your-client-id', 5],
  ['platform.clientSecret', 'a\nb', 'ä', 'replace-me', '<your client secret>', 5],
  [
    'platform.callbackUrl',
    '/api/auth/callback',
    'app.example.com/api/auth/callback',
    'ftp://app.example.com/api/auth/callback',
    'https://app.example.com/',
    'https://app.example.com/api/auth/callback/',
    'https://app.example.com/API/auth/callback',
    'https://app.example.com/callback?x=/api/auth/callback',
    'https://app.example.com/api/auth/callback#x',
    'https://user:pass@app.example.com/api/auth/callback',
    'https://app.example.com//evil.example/api/auth/callback',
    'https://app.example.com\\x/api/auth/callback',
    'https://app. example.com/api/auth/callback',
    'https://app.example.com/a\n/api/auth/callback',
    'https:///api/auth/callback',
    'https://app.example.com:99999/api/auth/callback',
    5
  ],
  ['platform.authorizationParams', 'a=1&a=2', 'scope=x', '1=a', { a: 5 }, { nonce: 'x' }, 5, 'max_age=-1', 'max_age='],
  ['access.acr', [], '', 5, ['two levels'], ['ä']],
  ['platform.logoutParams', 'id_token_hint=x', { client_id: 'x' }, ['a=b']],
  ['platform.scopes', ['a b'], ['ä'], ['a"'], 'a\\b', 5, [5], { a: 1 }],
  ['platform.issuer', 'none', 'http://id.example', 'https://id.example?x', 'https://u:p@id.example', 5],
  ['platform.tokenEndpoint', 'none', 'http://id.example/token', 'https://id.example/token#x', ''],
  ['platform.revocationEndpoint', 'off', 'http://id.example/revoke', 5],
  ['platform.pkce', 'true', 1],
  ['platform.timeout', 0, 61, '0s', '61s', '5m', '10ms', '1.5m', '-1s', 's', ''],
  ['refresh.jitter', -1, 3601, '3601', '2h', 1.5],
  ['profile.cacheTtl', -1, 3601, '61m', 0.5],
  ['apiProxy.maxBody', -1, '1kb5', '1.5MB', '2000GiB', '100 megabytes', true],
  ['logout.idp', 'none', 1],
  ['access.allow', ['*', 'a@b.example'], '* x', []],
  ['metrics.address', '9090', 9090, '127.0.0.1', ':65536', '::1:9090', 'http://localhost:9090'],
  ['redis.url', 'localhost:6379', 'http://localhost', 'redis://', 'redis://a b', 5],
  ['log.level', 'verbose', '30', 30, null, ['info']],
  ['shutdown.grace', -1, 301]
]

/** Returns why a setting refuses this value. Undefined if the setting accepts it. */
function reasonFor(key: SettingKey, value: unknown): string | undefined {
  const result = checkValue(key, value)
  return 'rejected' in result ? result.rejected[0] : undefined
}

for (const [key, ...values] of refused) {
  test(`${key} refuses invalid values and says what is allowed`, t => {
    for (const value of values) t.true(reasonFor(key, value)?.includes(settingOf(key).type.allowed), String(value))
  })
}

// The placeholders of each row are separated by commas.
for (const [key, placeholders] of [
  [
    'platform.clientId',
    `the-client-id,THE_CLIENT_ID,your-client-id,YOUR_CLIENT_ID_HERE,<your client id>,client_id,the-application-id,\${APS_CLIENT_ID},replace-with-your-client-id,changeme`
  ],
  [
    'platform.clientSecret',
    `the-client-secret,the-value-of-the-client-secret,YOUR_CLIENT_SECRET,<secret>,\${APS_CLIENT_SECRET},change-me`
  ]
] as const) {
  test(`${key} refuses a placeholder and says that it is one`, t => {
    for (const text of placeholders.split(',')) carries(t, reasonFor(key, text), 'placeholder the client')
  })
}

test('the prefix __Host- in session.cookieName is removed, because the server adds it', t => {
  t.deepEqual(checkValue('session.cookieName', '__Host-Http-sid'), { value: 'Http-sid' })
})

const fromText: readonly (readonly [SettingKey, string, unknown])[] = [
  ['port', '80', 80],
  ['port', ' 80 ', 80],
  ['platform.pkce', 'false', false],
  ['platform.pkce', 'No', false],
  ['platform.pkce', '0', false],
  ['platform.pkce', 'off', false],
  ['log.requests', 'TRUE', true],
  ['log.requests', 'yes', true],
  ['log.requests', '1', true],
  ['log.requests', 'on', true],
  ['platform.scopes', ' a:b\tc ', ['a:b', 'c']],
  ['platform.clientId', 'urn:client:1', 'urn:client:1'],
  [
    'platform.authorizationParams',
    'audience=https%3A%2F%2Fa.example&b=c+d',
    { audience: 'https://a.example', b: 'c d' }
  ],
  ['log.level', 'warn', 'warn'],
  ['log.level', 'INFO', 'info'],
  ['mode', 'Dual', 'dual']
]

for (const [key, text, value] of fromText) {
  test(`the variable of ${key} accepts the string ${JSON.stringify(text)}`, async t => {
    const { config } = await load(t, { env: { [settingOf(key).env]: text } })
    const [group = '', member] = key.split('.')
    const found = (config as unknown as Record<string, Record<string, unknown>>)[group]
    t.deepEqual(member === undefined ? found : found?.[member], value)
  })
}

const inFile = (settings: unknown) => ({ files: { 'x.json': JSON.stringify(settings) }, configFile: 'x.json' })

test('a settings file may write a number or a yes-or-no value as a string, as variables do', async t => {
  const written = { port: '8096', logout: { idp: 'yes' }, log: { requests: 'true' }, platform: { timeout: '5' } }
  const { config } = await load(t, inFile(written))
  t.like(config, { port: 8096, logout: { idp: true }, log: { requests: true }, platform: { timeoutSeconds: 5 } })
  await refuses(t, inFile({ port: '80.5' }), 'port 0 65535')
})

for (const text of ['0x50', '8e1', '80.0', '+80', '8 0', '-1', 'http']) {
  test(`the string ${text} is not a valid port`, t => refuses(t, { env: { PORT: text } }, 'port PORT 0 65535'))
}

test('a folder of static files must exist, and its path becomes absolute', async t => {
  const { config } = await load(t, { flags: { wwwroot: 'pages' }, files: { 'pages/index.html': '' } })
  t.regex(config.wwwroot ?? '', /^\/.*\/pages$/)
  await refuses(t, { flags: { wwwroot: 'pages' } }, 'wwwroot no such folder path')
  await refuses(t, { flags: { wwwroot: 'pages' }, files: { pages: '' } }, 'wwwroot it is a file path')
})

test('a folder wwwroot in the working directory is served by default', async t => {
  const { config, sources } = await load(t, { files: { 'wwwroot/index.html': '' } })
  t.regex(config.wwwroot ?? '', /^\/.*\/wwwroot$/)
  t.is(sources.wwwroot, 'default')
  t.is((await load(t, { files: { wwwroot: 'a file' } })).config.wwwroot, undefined)
})

test('the fallback must be a file of wwwroot', async t => {
  const files = { 'wwwroot/index.html': '', 'wwwroot/app/shell.html': '', 'outside.html': '' }
  for (const fallback of ['index.html', 'app/shell.html']) {
    t.is((await load(t, { flags: { fallback }, files })).config.fallback, fallback)
  }
  await refuses(t, { flags: { fallback: 'app.html' }, files }, 'fallback "app.html", wwwroot no such file index.html')
  const outside = 'app,/index.html,../outside.html,app/../index.html,.env,a\\b.html,a b.html'
  for (const fallback of outside.split(',')) await refuses(t, { flags: { fallback }, files }, 'fallback')
})

test('a wrong wwwroot causes no further errors about its files', t =>
  refuses(t, { flags: { wwwroot: 'pages', fallback: 'index.html' } }, 'wwwroot'))

test('each missing folder in hashedAssets gets a warning', async t => {
  const files = { 'wwwroot/assets/app-1a2b3c4d.js': '' }
  const warning = 'hashedAssets "static/js", wwwroot no such folder'
  const { config } = await accepts(t, { flags: { hashedAssets: 'assets static/js' }, files }, warning)
  t.deepEqual(config.hashedAssets, ['assets', 'static/js'])
})
