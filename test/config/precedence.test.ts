import test from 'ava'
import { settingKeys, settingOf } from '#src/config/settings.js'
import { enough, load } from './given.js'

const inOrder = [
  { source: 'flag --port', port: 1001, given: { flags: { port: '1001' } } },
  { source: 'this program', port: 1002, given: { overrides: { port: 1002 } } },
  { source: 'variable PORT', port: 1003, given: { env: { PORT: '1003' } } },
  { source: 'variable PORT in .env', port: 1004, given: { files: { '.env': 'PORT=1004' } } },
  {
    source: 'file .platform-auth-serverrc.json',
    port: 1005,
    given: { files: { '.platform-auth-serverrc.json': '{"port":1005}' } }
  },
  { source: 'default', port: 8080, given: {} }
] as const

for (const [index, strongest] of inOrder.entries()) {
  test(`${strongest.source} takes precedence over all later sources`, async t => {
    const given = inOrder.slice(index).map(source => source.given)
    const files = Object.assign({}, ...given.map(source => ('files' in source ? source.files : {})))
    const { config, sources } = await load(t, { ...Object.assign({}, ...given), files })
    t.is(config.port, strongest.port)
    t.is(sources.port, strongest.source)
  })
}

test("null in a program's settings selects the default, whatever the environment says", async t => {
  const env = { PLATFORM_TOKEN_ENDPOINT: 'https://other.example/token', LOG_LEVEL: 'trace' }
  const { config, sources } = await load(t, {
    env,
    overrides: { platform: { tokenEndpoint: null }, log: { level: null } }
  })
  t.is(config.platform.tokenEndpoint, undefined)
  t.is(config.log.level, 'info')
  t.is(sources['log.level'], 'default')
})

test("undefined in a program's settings has no effect", async t => {
  const { config } = await load(t, { env: { PORT: '9000' }, overrides: { port: undefined } })
  t.is(config.port, 9000)
})

test('a wrong value is ignored if a source of higher precedence sets the setting', async t => {
  const { config } = await load(t, { env: { PORT: 'many' }, flags: { port: '9000' } })
  t.is(config.port, 9000)
})

test('an empty variable is treated as missing', async t => {
  const files = { '.platform-auth-serverrc.json': '{"port":1005}' }
  const { config } = await load(t, { env: { PORT: ' ' }, files })
  t.is(config.port, 1005)
})

test('the configuration contains every setting in its group with its default', async t => {
  const { config, sources } = await load(t)
  for (const key of settingKeys) {
    const [group = '', member] = key.split('.')
    const inGroup: unknown = Object.entries(config).find(([name]) => name === group)?.[1]
    const value = member === undefined ? inGroup : (inGroup as Record<string, unknown>)[member]
    if (sources[key] === 'default') t.deepEqual(value, settingOf(key).default, key)
    else t.truthy(value, key)
  }
})

test('the defaults are those of the service contract', async t => {
  const { config } = await load(t)
  t.like(config, {
    mode: 'single',
    port: 8080,
    host: undefined,
    wwwroot: undefined,
    fallback: undefined,
    hashedAssets: undefined,
    session: {
      secret: enough.SERVER_SESSION_SECRET,
      previousSecrets: [],
      maxAgeSeconds: 86_400,
      absoluteMaxAgeSeconds: undefined,
      cookieName: 'platform_session'
    },
    platform: {
      clientId: 'client',
      clientSecret: enough.PLATFORM_CLIENT_SECRET,
      callbackUrl: 'http://localhost:8080/api/auth/callback',
      scopes: ['data:read', 'account:read', 'account:write'],
      internalScopes: ['data:read', 'viewables:read'],
      publicScopes: ['viewables:read'],
      issuer: undefined,
      authorizationEndpoint: undefined,
      tokenEndpoint: undefined,
      userinfoEndpoint: undefined,
      revocationEndpoint: undefined,
      endSessionEndpoint: undefined,
      clientAuthentication: 'client_secret_basic',
      pkce: true,
      prompt: undefined,
      timeoutSeconds: 10
    },
    refresh: { marginSeconds: 0, spreadSeconds: 0 },
    profile: { keepSeconds: 0 },
    access: { allow: undefined },
    logout: 'revoke',
    proxy: {
      routes: [],
      requestHeaders: ['x-ads-region', 'region'],
      responseHeaders: [],
      timeoutSeconds: 60,
      maxBodyBytes: 104_857_600,
      csrfHeader: undefined
    },
    redisUrl: undefined,
    log: { level: 'info', pretty: undefined, requests: false },
    trustProxy: false,
    pages: { name: undefined, logo: undefined, accent: undefined, folder: undefined },
    forwardAuth: { port: undefined, host: '127.0.0.1' },
    metrics: { port: undefined, host: '127.0.0.1' },
    shutdown: { delaySeconds: 0, graceSeconds: 25 }
  })
})
