import { randomBytes } from 'node:crypto'
import test from 'ava'
import { newSecret, sessionSecret as sessionSecretType } from '#src/config/types/secrets.js'
import { accepts, clientSecret, enough, load, refuses, type Situation, sessionSecret } from './given.js'
import { type Case, testMessages } from './messages.js'

const otherSecret = 'Zx8cVb5nMq1wEr4tYu7iOp0aSd3fGh6j'
const rcFile = '.platform-auth-serverrc'
const sessionSecretIn = (path: string) => ({ SERVER_SESSION_SECRET: undefined, SERVER_SESSION_SECRET_FILE: path })
const clientSecretIn = (path: string) => ({ PLATFORM_CLIENT_SECRET: undefined, PLATFORM_CLIENT_SECRET_FILE: path })

for (const [what, secret, isOdd] of [
  ['nothing', otherSecret, false],
  // Line breaks at the end of a file are usual.
  ['a line feed', `${otherSecret}\n`, false],
  ['a Windows line break', `${otherSecret}\r\n`, false],
  ['spaces', ` ${otherSecret}\t`, true],
  ['blank lines', `\r\n${otherSecret}\n\n \n`, true]
] as const) {
  for (const [source, situation] of Object.entries<Situation>({
    'variable SERVER_SESSION_SECRET_FILE': { env: sessionSecretIn('run/s'), files: { 'run/s': secret } },
    'flag --session-secret-file': { flags: { 'session.secret': 'run/s' }, files: { 'run/s': secret } },
    'variable SERVER_SESSION_SECRET': { env: { SERVER_SESSION_SECRET: secret } },
    [`file ${rcFile}`]: {
      env: { SERVER_SESSION_SECRET: undefined },
      files: { [rcFile]: `session: { secret: ${JSON.stringify(secret)} }` }
    },
    'your application': { settings: { session: { secret } } }
  })) {
    test(`${what} after a secret is removed from every source alike: ${source}`, async t => {
      const { config, sources, warnings } = await load(t, situation)
      t.is(config.session.secret, otherSecret)
      t.is(sources['session.secret'], source)
      t.is(
        warnings.some(({ message }) => message.includes('spaces')),
        isOdd
      )
    })
  }
}

test('previous secrets are accepted exactly if they are accepted as the secret', async t => {
  const twoLines = `${otherSecret}\n${sessionSecret}`
  const twice = 'session.secret SERVER_SESSION_SECRET space line break session.previousSecrets'
  await refuses(t, { env: { SERVER_SESSION_SECRET: twoLines } }, twice)
  const listed = { [rcFile]: `session: { previousSecrets: [" ${otherSecret}\\n"] }` }
  t.deepEqual((await load(t, { files: listed })).config.session.previousSecrets, [otherSecret])
  const inside = { [rcFile]: `session: { previousSecrets: ["${twoLines.replace('\n', ' ')}"] }` }
  await refuses(t, { files: inside }, 'session.previousSecrets one of them space')
})

const inDotEnv = (text: string, env: Situation['env'] = {}): Case => ({ files: { '.env': text }, env })
const named = (name: string, value = 'x'): Case => ({ env: { [name]: value } })
const afterOpenQuote = `PLATFORM_CLIENT_SECRET=${clientSecret}\nSERVER_SESSION_SECRET="${sessionSecret}"\n`

const noAssignments = [
  ' \t',
  'LOG_LEVEL=debug',
  '  # a comment with no assignment',
  'export PORT = 9000',
  'OTHER="no assignment',
  'no assignment" # nonsense',
  clientSecret
]

// A value that Docker, Compose or systemd read differently.
const ambiguous = [
  'PLATFORM_CLIENT_SECRET=abc#hunter',
  'PLATFORM_CLIENT_SECRET=abc   ',
  'PLATFORM_CLIENT_SECRET="abc"hunter',
  'PLATFORM_CLIENT_SECRET=`abc`',
  'PLATFORM_CLIENT_SECRET="a\\tc"',
  'PLATFORM_CLIENT_SECRET=abc$HOME',
  'PLATFORM_CLIENT_SECRET="abc$HOME"',
  'PLATFORM_CLIENT_SECRET=\'"abc"\'',
  'PLATFORM_CLIENT_SECRET=" abc"',
  'PLATFORM_AUTH_ACCESS_ALLOW=groups=a#b'
]
const clear = [
  "PLATFORM_CLIENT_SECRET='abc$HOME#def'",
  'PLATFORM_CLIENT_SECRET=abc # a comment with $HOME',
  'PLATFORM_CLIENT_SECRET="abc" # a comment',
  'export PLATFORM_CLIENT_SECRET=abc',
  // Only secrets and the access list are worth a warning.
  'PLATFORM_CLIENT_ID=abc#def',
  'OTHER=abc#def'
]

testMessages('dot-env', {
  ...Object.fromEntries(
    [...ambiguous, ...clear].map(line => [
      line,
      inDotEnv(`${line}\nPORT=9000\n`, { [/\w+(?==)/.exec(line)?.[0] ?? '']: undefined })
    ])
  ),
  ...Object.fromEntries(
    [
      'PLATFORM_CALLBACK_URL="http://localhost:8190/api/auth/callback',
      'LOG_LEVEL="info',
      'PLATFORM_AUTH_WWWROOT="pages',
      // Otherwise the following lines would become scopes and be sent to the provider.
      'PLATFORM_SCOPES="data:read',
      'SERVER_SESSION_SECRET="9a1z',
      'PLATFORM_CLIENT_SECRET_FILE="secret.txt'
    ].map(line => [
      `an open quotation mark: ${line}`,
      inDotEnv(`${line}\n${afterOpenQuote}`, {
        ...Object.fromEntries(Object.keys(enough).map(name => [name, undefined])),
        PLATFORM_CLIENT_ID: 'x'
      })
    ])
  ),
  'UTF-16': inDotEnv('P\0O\0R\0T\0'),
  'a dangling symlink': { links: { '.env': '/not/there' } },
  'a symlink in a circle': { links: { '.env': '.env' } },
  'lines that are no assignments': inDotEnv(noAssignments.join('\n')),
  'a colon in place of the equals sign': inDotEnv(`PLATFORM_CLIENT_ID: ${clientSecret}=`),
  'a colon in place of the equals sign of the access list': inDotEnv(
    'PORT=9000\nPLATFORM_AUTH_ACCESS_ALLOW: a@b.example\nLOG_LEVEL=debug'
  ),
  'a missing equals sign': inDotEnv(`REDIS_URL${clientSecret}`),
  'names without values, as shells export them': inDotEnv(
    'export SERVER_SESSION_SECRET PORT\nSERVER_SESSION_SECRET # from docker'
  ),
  'a secret whose padding looks like an assignment': inDotEnv('hunterKx8+7Zq==\nPLATFORM_hunter=='),
  'an invisible character in a name': inDotEnv('\u200bPLATFORM_AUTH_ACCESS_ALLOW=a@b.example'),
  'a byte order mark inside a name': inDotEnv('PLATFORM_AUTH\uFEFF_ACCESS_ALLOW=a@b.example'),
  'a name in quotation marks': inDotEnv('"PORT"=9000'),
  'the syntax of Windows': inDotEnv('set PORT=9000\n$env:LOG_LEVEL=debug'),
  'a list in YAML': inDotEnv('- PORT=9000'),
  'a dot after a name': inDotEnv('PORT.=9000'),
  'another name': inDotEnv('myport=9000\nREPORT=1\nAPP PORT_NAME=1\nappPORT=1'),
  ...Object.fromEntries(
    ['\u2028', '\v'].map(end => [
      `only a line feed ends a line, and not ${JSON.stringify(end)}`,
      inDotEnv(`PORT=9000${end}1`)
    ])
  ),
  'variables that Node and packages read': inDotEnv(
    'NODE_EXTRA_CA_CERTS=ca.pem\nNODE_OPTIONS=--inspect\nHTTPS_PROXY=http://u:hunter@h\nOTEL_SERVICE_NAME=a'
  ),
  'a variable of Node that the environment sets as well': inDotEnv('NODE_EXTRA_CA_CERTS=ca.pem', {
    NODE_EXTRA_CA_CERTS: 'ca.pem'
  })
})

const unknown =
  'PLATFORM_AUTH_MOD PLATFORM_CALLBACK_URI INTERNAL_TOKEN_SCOPE PLATFORM_AUTH_PORT PLATFORM_PORT PLATFORM_AUTH_LOG_LEVEL PLATFORM_AUTH_CLIENT_ID PLATFORM_LOGOUT_IDP PLATFORM_METRIC_ADDRESS PLATFORM_INTERNAL_TOKEN_SCOPES REDIS_URI LOG_REQUEST PLATFORM_QQQQQQQQQQQQQQQQQQQQQQ'
// These resemble no security setting more than any other setting.
const harmless =
  'PLATFORM_NAME PLATFORM_VERSION PLATFORM_ENV PLATFORM_REGION PLATFORM_TOKEN PLATFORM_STORE PLATFORM_URL PLATFORM_API_KEYS PLATFORM_CLIENT_ID_FILE PLATFORM_AUTH_HOSTS'
const nearSecurity =
  'PLATFORM_AUTH_ACCES_ALLOW PLATFORM_ACCESS_ALLOW PLATFORM_AUTH_ALLOW PLATFORM_ALLOW PLATFORM_AUTH_ALLOWED PLATFORM_AUTH_ACCESS_ALLOWED PLATFORM_AUTH_ACCESSALLOW PLATFORM_AUTH_ACCESS PLATFORM_AUTH_ACCESS_ALLOW_LIST platform_auth_access_allow Platform_Auth_Acess_Alow PLATFORM_AUTH_ACCESS_FILE PLATFORM_AUTH_ACCES_FILES PLATFORM_AUTH_ACCESSFILES PLATFORM_ACCESS_FILES PLATFORM_AUTH_FILES PLATFORM_FORWARD_AUTH_ADDRESS PLATFORM_AUTH_FORWARD_ADDRESS PLATFORM_AUTH_SESION_INACTIVITY_TIMEOUT PLATFORM_AUTH_SESSION_SECRET PLATFORM_SESSION_SECRET_FILE PLATFORM_SECRET PLATFORM_REDIS_URL'
const ofKubernetes = {
  PLATFORM_AUTH_SERVICE_HOST: '10.0.0.1',
  PLATFORM_AUTH_SERVICE_PORT: '80',
  PLATFORM_AUTH_SERVICE_PORT_HTTP: '80',
  PLATFORM_AUTH_PORT: 'tcp://10.0.0.1:80',
  PLATFORM_AUTH_PORT_80_TCP: 'tcp://10.0.0.1:80',
  PLATFORM_AUTH_PORT_80_TCP_PROTO: 'tcp',
  PLATFORM_AUTH_FORWARD_AUTH_PORT: 'tcp://10.0.0.1:4181',
  PLATFORM_SERVICE_HOST: '10.0.0.1',
  REDIS_PORT: 'tcp://10.0.0.2:6379',
  REDIS_SERVICE_HOST: '10.0.0.2',
  REDIS_PORT_6379_TCP_ADDR: '10.0.0.2'
}
const references = `@Microsoft.KeyVault(SecretUri=https://v.vault.azure.net/secrets/s) secretref:session-secret-of-this-server {{resolve:secretsmanager:s:SecretString:a}} arn:aws:secretsmanager:eu-west-1:123456789012:secret:s projects/p/secrets/session/versions/latest vault:secret/data/session-secret#value op://vault/item/session-secret-field sm://project/session-secret-of-it ref+awssecrets://session/secret/of/it ENC[AES256_GCM,data:Zx8cVb5n,iv:a,tag:b] $(SESSION_SECRET_OF_THIS_SERVER) \${SESSION_SECRET:-Zx8cVb5nSession} $SERVER_SESSION_SECRET_FROM_A_SHELL $env:SERVER_SESSION_SECRET_VALUE %SERVER_SESSION_SECRET_OF_WINDOWS% {{.Values.sessionSecret}}Zx8cVb5n}}`

testMessages('variables', {
  ...Object.fromEntries(
    [...unknown.split(' '), ...harmless.split(' '), ...nearSecurity.split(' ')].map(name => [name, named(name)])
  ),
  'an unknown variable in .env': inDotEnv('PLATFORM_CLIENT_IDD=x'),
  'variables with other prefixes': { env: { SERVER_SESION_SECRET: 'x', OTHER_ALLOW: 'x' } },
  'the variables of Kubernetes': { env: ofKubernetes },
  'a secret in quotation marks': named('PLATFORM_CLIENT_SECRET', '"abc"'),
  'a secret that contains quotation marks': named('PLATFORM_CLIENT_SECRET', 'a"b"'),
  'a $ in a client id': named('PLATFORM_CLIENT_ID', '$CLIENT'),
  'a secret and its file': {
    env: { SERVER_SESSION_SECRET_FILE: 'secret.txt' },
    files: { 'secret.txt': sessionSecret }
  },
  // Otherwise the server would run without Redis.
  'an empty file for Redis': { env: { REDIS_URL_FILE: 'secret.txt' }, files: { 'secret.txt': '\n' } },
  'an empty file for the client key': {
    env: { PLATFORM_CLIENT_AUTH_METHOD: 'private_key_jwt', PLATFORM_CLIENT_KEY_FILE: 'secret.txt' },
    files: { 'secret.txt': '' }
  },
  // A flag is refused even if another source sets the secret.
  'an empty file in a flag': { flags: { 'platform.clientSecret': 'secret.txt' }, files: { 'secret.txt': ' \n' } },
  'a file that does not exist': { env: clientSecretIn('secrets/no.txt') },
  'a folder in place of a file': { env: clientSecretIn('.') },
  'a file in UTF-16': { env: clientSecretIn('secret.txt'), files: { 'secret.txt': 'h\0u\0' } },
  ...Object.fromEntries(
    [sessionSecret, `${sessionSecret}/${sessionSecret}`, `/${sessionSecret}`, sessionSecret.repeat(200)].map(
      (secret, index) => [`a secret in place of the path of its file ${index}`, { env: sessionSecretIn(secret) }]
    )
  ),
  'a password in a flag': { flags: { 'redis.url': 'redis://user:hunter@localhost' } },
  'a URL without a password in a flag': { flags: { 'redis.url': 'redis://a,b?sentinel=main' } },
  'a password in a variable': named('REDIS_URL', 'redis://user:hunter@localhost'),
  "the names of the platform's tutorials": {
    env: {
      PLATFORM_CLIENT_ID: '',
      PLATFORM_CLIENT_SECRET: undefined,
      PLATFORM_CALLBACK_URL: undefined,
      APS_CLIENT_ID: 'tutorial',
      APS_CLIENT_SECRET: clientSecret,
      APS_CALLBACK_URL: 'http://localhost:9090/api/auth/callback'
    }
  },
  // Values that their types refuse are never quoted, because a secret may have been pasted into the wrong setting.
  'a secret in other settings': {
    env: {
      PORT: 'hunter',
      LOG_LEVEL: 'hunter',
      PLATFORM_TIMEOUT: 'hunter',
      PLATFORM_ISSUER: 'https://u:hunter@idp.example',
      PLATFORM_TOKEN_ENDPOINT: 'https:\\\\u:hunter@idp.example',
      PLATFORM_CALLBACK_URL: 'https://u:hun#ter@app.example/api/auth/callback',
      PLATFORM_AUTHORIZATION_PARAMS: 'client_secret=hunter',
      PLATFORM_LOGOUT_PARAMS: 'hunter==&hunter==',
      PLATFORM_AUTH_METRICS_ADDRESS: 'hunter',
      PLATFORM_AUTH_WWWROOT: 'hunter',
      PLATFORM_AUTH_EXTENSION: '/hunter',
      PLATFORM_AUTH_BRANDING_LOGO: 'hunter',
      PLATFORM_AUTH_SESSION_COOKIE_NAME: 'hunter==',
      PLATFORM_AUTH_ACCESS_FILES: 'hunter',
      PLATFORM_AUTH_API_PROXY_CSRF_HEADER: 'hun ter'
    }
  },
  ...Object.fromEntries(
    references.split(' ').map(value => [`the reference ${value.slice(0, 14)}`, named('SERVER_SESSION_SECRET', value)])
  ),
  'a path that exists as session secret': named('SERVER_SESSION_SECRET', process.execPath.padStart(32, '/')),
  'references as client secret': named('PLATFORM_CLIENT_SECRET', 'op://vault/item/field'),
  'a reference as earlier secret': named('SERVER_SESSION_PREVIOUS_SECRETS', 'op://vault/item/session-secret-field')
})

test('no random secret counts as a reference or as weak', t => {
  const generators = [() => randomBytes(48).toString('base64'), () => randomBytes(32).toString('hex'), newSecret]
  for (const generate of generators) {
    const refused = Array.from({ length: 10_000 }, generate).filter(
      secret => !('value' in sessionSecretType.parse(secret))
    )
    t.is(refused.length, 0)
  }
})

test('previous secrets are separated by white space, also in a file', async t => {
  const earlier = ['hT2kPz7WqXn4Vb9LsYc5JgRd8mMfA3eU', otherSecret]
  for (const env of [
    { SERVER_SESSION_PREVIOUS_SECRETS: earlier.join('\n') },
    { SERVER_SESSION_PREVIOUS_SECRETS_FILE: 'earlier.txt' }
  ]) {
    const { config } = await load(t, { env, files: { 'earlier.txt': `${earlier.join('\n')}\n` } })
    t.deepEqual(config.session.previousSecrets, earlier)
  }
})

test('a .env file sets only variables that the environment does not set', async t => {
  const files = { '.env': 'PORT=9000\nLOG_LEVEL="debug"\n# a comment\n' }
  const { config, sources } = await load(t, { env: { PORT: '9001' }, files })
  t.is(config.port, 9001)
  t.is(config.log.level, 'debug')
  t.is(sources['log.level'], 'variable LOG_LEVEL in .env')
})

test('a variable of the process may have several lines, as in a block of YAML', async t => {
  const { config } = await load(t, { env: { PLATFORM_SCOPES: 'data:read\nviewables:read\n' } })
  t.deepEqual(config.platform.scopes, ['data:read', 'viewables:read'])
})

for (const [what, mark, newline] of [
  ['the line ends \\n', '', '\n'],
  ['the line ends \\r', '', '\r'],
  ['the line ends \\r\\n and a byte order mark', '\uFEFF', '\r\n']
] as const) {
  test(`.env and a secret file may have ${what}`, async t => {
    const files = {
      '.env': mark + ['LOG_LEVEL=debug', 'PLATFORM_CLIENT_SECRET_FILE=secret.txt', 'PORT=9000', ''].join(newline),
      'secret.txt': `${mark}${clientSecret}${newline}`
    }
    const { config } = await load(t, { env: { PLATFORM_CLIENT_SECRET: undefined }, files })
    t.like(config, { port: 9000, log: { level: 'debug' }, platform: { clientSecret } })
  })
}

test('a value in quotation marks whose variable has an odd name contains no settings', async t => {
  const files = { '.env': 'MY KEY="x\nPLATFORM_AUTH_ACCESS_ALLOW=*@a.example\nPORT=9001\n"\nLOG_LEVEL=debug' }
  const { config } = await load(t, { files })
  t.deepEqual([config.port, config.access.allow, config.log.level], [8080, [], 'debug'])
})

test('a line of .env that is no assignment hides no other line', async t => {
  const { config } = await load(t, { files: { '.env': noAssignments.join('\r\n') } })
  t.like(config, { port: 9000, log: { level: 'debug' } })
})

test('.env may be joined from files with a byte order mark', async t => {
  const files = { '.env': '\uFEFFLOG_LEVEL=debug\n\uFEFF\uFEFFPORT=9000\n' }
  t.like((await load(t, { files })).config, { port: 9000, log: { level: 'debug' } })
})

test('"export" before a name in .env stays an assignment', async t => {
  t.is((await accepts(t, { files: { '.env': 'export PORT = 9000\n' } })).config.port, 9000)
})

test('a folder called .env is ignored', async t => {
  const { config } = await load(t, { files: { '.env/bin/python': '' } })
  t.is(config.port, 8080)
})

test("the variable names of the platform's tutorials are ignored if ours are set", async t => {
  const { config } = await accepts(t, { env: { APS_CLIENT_ID: 'tutorial' } })
  t.is(config.platform.clientId, enough.PLATFORM_CLIENT_ID)
})
