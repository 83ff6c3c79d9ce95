import test from 'ava'
import { fieldOf, settingIn, settingKeys, settingOf } from '#src/config/settings.js'
import { accepts, keysAndSourcesOf, load, problemsOf } from './given.js'

test('all problems are reported together, each with its key and its source', async t => {
  const problems = await problemsOf(t, {
    flags: { port: 'x' },
    env: {
      SERVER_SESSION_SECRET: 'short',
      PLATFORM_CLIENT_ID: '',
      PLATFORM_CALLBACK_URL: 'http://localhost/callback',
      PLATFORM_AUTH_MODE: 'dual',
      PUBLIC_TOKEN_SCOPES: 'account:write'
    },
    files: { 'platform-auth-server.config.yaml': 'log: { level: 5, colour: true }\nrefresh: { beforeExpiry: soon }' }
  })
  t.deepEqual(keysAndSourcesOf(problems), [
    'log.colour (file platform-auth-server.config.yaml)',
    'port (flag --port)',
    'session.secret (variable SERVER_SESSION_SECRET)',
    'platform.clientId (variable PLATFORM_CLIENT_ID)',
    'platform.callbackUrl (variable PLATFORM_CALLBACK_URL)',
    'refresh.beforeExpiry (file platform-auth-server.config.yaml)',
    'log.level (file platform-auth-server.config.yaml)',
    'platform.publicTokenScopes (variable PUBLIC_TOKEN_SCOPES)'
  ])
})

test("mistakes in an application's settings are reported like mistakes in a file", async t => {
  const settings = { platform: { clientId: 5 }, prot: 80 } as object
  const problems = await problemsOf(t, { settings })
  t.deepEqual(keysAndSourcesOf(problems), ['prot (your application)', 'platform.clientId (your application)'])
})

const inOrder = [
  { source: 'flag --port', port: 1001, given: { flags: { port: '1001' } } },
  { source: 'your application', port: 1002, given: { settings: { port: 1002 } } },
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

test('in a demo, rules of the API proxy come only from the flag, and rules from other sources get a warning', async t => {
  const rule = 'GET /api/hubs/** https://api.example/hubs/**'
  const files = { 'platform-auth-server.config.yaml': `apiProxy: { rules: ['${rule}'] }` }
  const env = { PLATFORM_AUTH_API_PROXY_RULES: rule }
  for (const [source, situation] of [
    ['file platform-auth-server.config.yaml', { files }],
    ['variable PLATFORM_AUTH_API_PROXY_RULES', { files, env }]
  ] as const) {
    const { config } = await accepts(
      t,
      { ...situation, demo: true },
      `apiProxy.rules ${source} not used demo --api-proxy`
    )
    t.deepEqual(config.apiProxy.rules, [])
  }
  const { config } = await accepts(t, { files, demo: true, flags: { 'apiProxy.rules': [rule] } })
  t.is(config.apiProxy.rules.length, 1)
  await accepts(t, { env: { PLATFORM_AUTH_API_PROXY_RULES: '' }, demo: true })
})

test("null in an application's settings selects the default, whatever the environment says", async t => {
  const env = { PLATFORM_TOKEN_ENDPOINT: 'https://other.example/token', LOG_LEVEL: 'trace' }
  const { config, sources } = await load(t, {
    env,
    settings: { platform: { tokenEndpoint: null }, log: { level: null } }
  })
  t.is(config.platform.tokenEndpoint, undefined)
  t.is(config.log.level, 'info')
  t.is(sources['log.level'], 'default')
})

for (const [what, situation, port] of [
  [
    "undefined in an application's settings has no effect",
    { env: { PORT: '9000' }, settings: { port: undefined } },
    9000
  ],
  [
    'a wrong value is ignored if a source of higher precedence has a value',
    { env: { PORT: 'x' }, flags: { port: '9000' } },
    9000
  ],
  [
    'an empty variable is treated as missing',
    { env: { PORT: ' ' }, files: { '.platform-auth-serverrc': 'port: 1005' } },
    1005
  ]
] as const) {
  test(what, async t => t.is((await load(t, situation)).config.port, port))
}

test('the configuration contains every setting in its group with its default', async t => {
  const { config, sources } = await load(t)
  for (const key of settingKeys) {
    const value = settingIn(config, fieldOf(key))
    if (sources[key] === 'default') t.deepEqual(value, settingOf(key).default, key)
    else t.truthy(value, key)
  }
})

test('the defaults are those of the service contract', async t => {
  const { config } = await load(t)
  const scopes = ['data:read', 'account:read', 'account:write']
  t.like(config, {
    mode: 'single',
    session: { inactivityTimeoutSeconds: 86_400, maxLifetimeSeconds: undefined },
    platform: { scopes, issuer: undefined, tokenEndpoint: undefined, clientAuthMethod: 'client_secret_basic' },
    // A refresh happens only when the token has expired.
    refresh: { beforeExpirySeconds: 0, jitterSeconds: 0 }
  })
})
