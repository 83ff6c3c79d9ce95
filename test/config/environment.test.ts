import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { ConfigError } from '#src/config/errors.js'
import { loadConfig, resolveSettings } from '#src/config/load.js'
import { carries } from '../helpers/messages.js'
import { tempFolder } from '../helpers/temp-folder.js'
import {
  accepts,
  areProblems,
  clientSecret,
  enough,
  keysOf,
  load,
  problemsOf,
  refuses,
  type Situation,
  sessionSecret
} from './given.js'

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

const secret = 'platform.clientSecret'
const oddLines: readonly (readonly [line: string, ...warnings: string[]])[] = [
  ['PLATFORM_CLIENT_SECRET=abc#def', `${secret} 3 characters "#"`],
  ['PLATFORM_CLIENT_ID=abc#def', 'platform.clientId "abc" "#"'],
  ['PLATFORM_CLIENT_SECRET=abc   ', `${secret} 3 characters white space end`],
  ['PLATFORM_CLIENT_SECRET="abc"def', `${secret} 3 characters follows quotation mark`],
  ['PLATFORM_CLIENT_SECRET=`abc`', `${secret} 3 characters only Node "\`"`],
  ['PLATFORM_CLIENT_SECRET="a\\tc"', `${secret} 4 characters "\\"`],
  ['PLATFORM_CLIENT_SECRET=abc$HOME', `${secret} 8 characters Compose "$"`],
  ['PLATFORM_CLIENT_SECRET="abc$HOME"', `${secret} 8 characters Compose "$"`],
  ['PLATFORM_CLIENT_SECRET=\'"abc"\'', `${secret} begins and ends quotation mark`],
  ['PLATFORM_CLIENT_SECRET=" abc"', `${secret} spaces removed`],
  ["PLATFORM_CLIENT_SECRET='abc$HOME#def'"],
  ['PLATFORM_CLIENT_SECRET=abc # a comment with $HOME'],
  ['PLATFORM_CLIENT_SECRET="abc" # a comment'],
  ['export PLATFORM_CLIENT_SECRET=abc'],
  // The process may use this variable for something else.
  ['OTHER=abc#def']
]

for (const [line, ...expected] of oddLines) {
  test(`a line of .env gets ${expected.length} warnings that other programs read it differently: ${line}`, async t => {
    const name = /\w+(?==)/.exec(line)?.[0] ?? ''
    const situation = { env: { [name]: undefined }, files: { '.env': `${line}\nPORT=9000\n` } }
    const { warnings } = await accepts(t, situation, ...expected)
    t.notRegex(JSON.stringify(warnings), /def|HOME/)
  })
}

for (const [value, ...expected] of [
  ['"abc"', `${secret} quotation mark`],
  ["'abc'", `${secret} quotation mark`],
  ['"'],
  ['a"b"']
] as const) {
  test(`a secret in a variable gets ${expected.length} warnings about quotation marks: ${value}`, async t => {
    await accepts(t, { env: { PLATFORM_CLIENT_SECRET: value } }, ...expected)
  })
}

test('a $ in a variable, and spaces around a value that is no secret, get no warning', async t => {
  const { config } = await accepts(t, { env: { PLATFORM_CLIENT_ID: '$CLIENT', PLATFORM_AUTH_MODE: ' single ' } })
  t.like(config, { mode: 'single', platform: { clientId: '$CLIENT' } })
})

for (const [key, value, isOdd] of [
  ['clientId', '$CLIENT', true],
  ['authorizationEndpoint', 'https://$(HOST)/authorize', true],
  ['authorizationEndpoint', 'https://idp.example/a$b', false]
] as const) {
  test(`the name of a variable in a settings file gets ${isOdd ? 'a' : 'no'} warning: ${value}`, async t => {
    const files = { [rcFile]: `platform: { ${key}: "${value}" }` }
    const env = { ...enough, PLATFORM_CLIENT_ID: undefined }
    const { warnings } = await resolveSettings({ cwd: await tempFolder(t, files), env })
    const about = warnings.filter(({ message }) => message.includes('"$"'))
    areProblems(t, about, isOdd ? [`platform.${key} name of a variable`] : [])
  })
}

test('a secret that is given both directly and as a file is refused with both names', t =>
  refuses(
    t,
    { env: { SERVER_SESSION_SECRET_FILE: 'secret.txt' }, files: { 'secret.txt': sessionSecret } },
    'session.secret SERVER_SESSION_SECRET SERVER_SESSION_SECRET_FILE Remove'
  ))

const noSecret: readonly (readonly [problem: string, situation: Situation])[] = [
  // Otherwise the server would run without Redis.
  ['redis.url REDIS_URL_FILE secret.txt empty rediss://', { env: { REDIS_URL_FILE: 'secret.txt' } }],
  [
    'platform.clientKey PLATFORM_CLIENT_KEY_FILE secret.txt empty private key',
    { env: { PLATFORM_CLIENT_AUTH_METHOD: 'private_key_jwt', PLATFORM_CLIENT_KEY_FILE: 'secret.txt' } }
  ],
  // A flag is refused even if another source sets the secret.
  [`${secret} --client-secret-file secret.txt empty`, { flags: { 'platform.clientSecret': 'secret.txt' } }]
]

for (const [problem, situation] of noSecret) {
  test(`an empty secret file is refused: ${problem}`, async t => {
    for (const content of ['', '\n', ' \n']) {
      await refuses(t, { ...situation, files: { 'secret.txt': content } }, problem)
    }
  })
}

test('for a secret file that cannot be read, the error gives the reason', async t => {
  const variable = `${secret} PLATFORM_CLIENT_SECRET_FILE`
  await refuses(t, { env: clientSecretIn('no.txt') }, `${variable} no.txt no such file path contains`)
  await refuses(t, { env: clientSecretIn('.') }, `${variable} folder`)
})

test('the message for a missing secret file contains its path, if the path cannot be a secret', async t => {
  const files = { 'secrets/other.txt': '' }
  const messageFor = async (path: string) => (await problemsOf(t, { env: sessionSecretIn(path), files }))[0]?.message
  for (const path of ['secrets/session', './session', '/dev/shm/no/session', 'session.txt', 'no-folder/session.key']) {
    carries(t, await messageFor(path), `the file ${path}, no such file`)
  }
  for (const path of ['session', 'no-folder/session', '/session']) {
    const message = await messageFor(path)
    carries(t, message, 'a file, no such file')
    t.false(message?.includes(path))
  }
})

test('a secret that was given instead of the name of its file is not printed', async t => {
  for (const secret of [sessionSecret, `${sessionSecret}/${sessionSecret}`, `/${sessionSecret}`, 'x'.repeat(5000)]) {
    const problems = await problemsOf(t, { env: sessionSecretIn(secret) })
    areProblems(t, problems, ['session.secret SERVER_SESSION_SECRET_FILE a file path'])
    t.false(JSON.stringify(problems).includes(secret))
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

const afterOpenQuote = `PLATFORM_CLIENT_SECRET=${clientSecret}\nSERVER_SESSION_SECRET="${sessionSecret}"\n`

for (const [key, line] of [
  ['platform.callbackUrl', 'PLATFORM_CALLBACK_URL="http://localhost:8190/api/auth/callback'],
  ['log.level', 'LOG_LEVEL="info'],
  ['wwwroot', 'PLATFORM_AUTH_WWWROOT="pages'],
  // Otherwise the following lines would become scopes and be sent to the provider.
  ['platform.scopes', 'PLATFORM_SCOPES="data:read'],
  ['session.secret', 'SERVER_SESSION_SECRET="9a1z'],
  ['platform.clientSecret', 'PLATFORM_CLIENT_SECRET_FILE="secret.txt']
] as const) {
  test(`an open quotation mark in .env is reported without the text after it: ${key}`, async t => {
    const cwd = await tempFolder(t, { '.env': `${line}\n${afterOpenQuote}` })
    const error = await t.throwsAsync(loadConfig({ cwd, env: {} }), { instanceOf: ConfigError })
    const about = error?.problems.filter(problem => problem.key === key)
    areProblems(t, about, [`${key} in .env) more than one line closing quotation mark`])
    for (const secret of [clientSecret, sessionSecret]) t.false(error?.message.includes(secret))
  })
}

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

test('a file in UTF-16 is refused with its name', async t => {
  for (const mark of ['\uFEFF', '']) {
    const files = {
      '.env': Buffer.from(`${mark}PORT=9000\r\n`, 'utf16le'),
      'secret.txt': Buffer.from(`${mark}${clientSecret}\r\n`, 'utf16le')
    }
    const env = clientSecretIn('secret.txt')
    await refuses(t, { env, files }, '.env not UTF-8', 'platform.clientSecret secret.txt not UTF-8')
  }
})

test('a variable in .env with a colon instead of the equals sign is reported without its value', async t => {
  const { warnings } = await load(t, { files: { '.env': `PLATFORM_CLIENT_ID: ${clientSecret}=` } })
  const problems = await problemsOf(t, { files: { '.env': `PLATFORM_CLIENT_SECRET: ${clientSecret}=` } })
  areProblems(t, warnings, ['PLATFORM_CLIENT_ID in .env equals sign'])
  areProblems(t, problems, ['PLATFORM_CLIENT_SECRET in .env equals sign'])
  t.false(JSON.stringify([warnings, problems]).includes(clientSecret))
})

const noAssignments = [
  `PLATFORM_AUTH_MOD: ${clientSecret}`,
  ' \t',
  'LOG_LEVEL=debug',
  '  # a comment with no assignment',
  'export PORT = 9000',
  'OTHER="no assignment',
  'no assignment" # nonsense',
  clientSecret
]

test('a line of .env that is no assignment gets a warning with its number, and hides no other line', async t => {
  const { config, warnings } = await accepts(
    t,
    { files: { '.env': noAssignments.join('\r\n') } },
    '.env line 1 not an assignment NAME=value',
    '.env line 8 not an assignment NAME=value'
  )
  t.like(config, { port: 9000, log: { level: 'debug' } })
  t.false(JSON.stringify(warnings).includes(clientSecret))
})

test('a value in quotation marks whose variable has an odd name contains no settings', async t => {
  const files = { '.env': 'MY KEY="x\nPLATFORM_AUTH_ACCESS_ALLOW=*@a.example\nPORT=9001\n"\nLOG_LEVEL=debug' }
  const { config } = await accepts(t, { files }, '.env line 1 not an assignment')
  t.deepEqual([config.port, config.access.allow, config.log.level], [8080, [], 'debug'])
})

test('only a line feed ends a line of .env', async t => {
  for (const separator of ['\u2028', '\u2029', '\v']) {
    await refuses(t, { files: { '.env': `PORT=9000${separator}1` } }, 'port PORT in .env')
  }
})

test('names without values, as shells export them, are warnings, and a value without an equals sign is not shown', async t => {
  const lines = ['export SERVER_SESSION_SECRET PORT', 'SERVER_SESSION_SECRET # from docker', `REDIS_URL${clientSecret}`]
  const { warnings } = await accepts(
    t,
    { files: { '.env': lines.join('\n') } },
    'SERVER_SESSION_SECRET line 1 in .env equals sign',
    'SERVER_SESSION_SECRET line 2 in .env equals sign',
    'REDIS_URL line 3 in .env equals sign'
  )
  t.false(JSON.stringify(warnings).includes(clientSecret))
})

test('a line of .env with a security setting and without an equals sign is refused', async t => {
  const files = { '.env': `PORT=9000\nPLATFORM_AUTH_ACCESS_ALLOW: a@b.example\nLOG_LEVEL=debug\n` }
  await refuses(t, { files }, 'PLATFORM_AUTH_ACCESS_ALLOW line 2 in .env equals sign')
})

test('a folder called .env is ignored', async t => {
  const { config } = await load(t, { files: { '.env/bin/python': '' } })
  t.is(config.port, 8080)
})

test('a .env file that cannot be read is an error', async t => {
  const cwd = await tempFolder(t)
  await symlink('.env', join(cwd, '.env'))
  const error = await t.throwsAsync(loadConfig({ cwd, env: enough }), { instanceOf: ConfigError })
  areProblems(t, error?.problems, ['.env working directory symlinks circle'])
})

test('the environment and the working directory of the process are used by default', async t => {
  const error = await t.throwsAsync(loadConfig({ flags: { port: 'x' } }))
  t.regex(error?.message ?? '', /port \(flag --port\)/)
})

const unknown: readonly (readonly [name: string, meant?: string])[] = [
  ['PLATFORM_AUTH_MOD', 'PLATFORM_AUTH_MODE'],
  ['PLATFORM_CALLBACK_URI', 'PLATFORM_CALLBACK_URL'],
  ['INTERNAL_TOKEN_SCOPE', 'INTERNAL_TOKEN_SCOPES'],
  ['PLATFORM_AUTH_PORT', 'PORT'],
  ['PLATFORM_PORT', 'PORT'],
  ['PLATFORM_AUTH_LOG_LEVEL', 'LOG_LEVEL'],
  ['PLATFORM_AUTH_CLIENT_ID', 'PLATFORM_CLIENT_ID'],
  ['PLATFORM_LOGOUT_IDP', 'PLATFORM_AUTH_LOGOUT_IDP'],
  ['PLATFORM_METRIC_ADDRESS', 'PLATFORM_AUTH_METRICS_ADDRESS'],
  ['PLATFORM_INTERNAL_TOKEN_SCOPES', 'INTERNAL_TOKEN_SCOPES'],
  ['REDIS_URI', 'REDIS_URL'],
  ['LOG_REQUEST', 'LOG_REQUESTS'],
  ['PLATFORM_QQQQQQQQQQQQQQQQQQQQQQ']
]

for (const [name, meant] of unknown) {
  test(`an unknown variable with one of our prefixes gets a warning with the most similar name: ${name}`, async t => {
    const { warnings } = await accepts(t, { env: { [name]: 'x' } }, `${name} not a setting ${meant ?? ''}`.trim())
    if (meant === undefined) t.false(warnings[0]?.message.includes('?'))
  })
}

test('an unknown variable in .env gets a warning, and one with another prefix gets none', async t => {
  const env = { SERVER_SESION_SECRET: 'not ours to judge' }
  const files = { '.env': 'PLATFORM_CLIENT_IDD=x' }
  await accepts(t, { env, files }, 'PLATFORM_CLIENT_IDD in .env PLATFORM_CLIENT_ID?')
})

// The wrong names of each row are separated by spaces.
for (const [meant, misspelt] of [
  [
    'PLATFORM_AUTH_ACCESS_ALLOW',
    'PLATFORM_AUTH_ACCES_ALLOW PLATFORM_ACCESS_ALLOW PLATFORM_AUTH_ALLOW PLATFORM_ALLOW PLATFORM_AUTH_ALLOWED'
  ],
  [
    'PLATFORM_AUTH_ACCESS_ALLOW',
    'PLATFORM_AUTH_ACCESS_ALLOWED PLATFORM_AUTH_ACCESSALLOW PLATFORM_AUTH_ACCESS PLATFORM_AUTH_ACCESS_ALLOW_LIST'
  ],
  ['PLATFORM_AUTH_ACCESS_ALLOW', 'platform_auth_access_allow Platform_Auth_Acess_Alow'],
  [
    'PLATFORM_AUTH_ACCESS_FILES',
    'PLATFORM_AUTH_ACCESS_FILE PLATFORM_AUTH_ACCES_FILES PLATFORM_AUTH_ACCESSFILES PLATFORM_ACCESS_FILES PLATFORM_AUTH_FILES'
  ],
  ['PLATFORM_AUTH_FORWARD_AUTH_ADDRESS', 'PLATFORM_FORWARD_AUTH_ADDRESS PLATFORM_AUTH_FORWARD_ADDRESS'],
  ['PLATFORM_AUTH_SESSION_INACTIVITY_TIMEOUT', 'PLATFORM_AUTH_SESION_INACTIVITY_TIMEOUT'],
  ['SERVER_SESSION_SECRET', 'PLATFORM_AUTH_SESSION_SECRET'],
  ['SERVER_SESSION_SECRET_FILE', 'PLATFORM_SESSION_SECRET_FILE'],
  ['PLATFORM_CLIENT_SECRET', 'PLATFORM_SECRET'],
  ['REDIS_URL', 'PLATFORM_REDIS_URL']
] as const) {
  test(`a variable that resembles the security setting ${meant} is an error: ${misspelt}`, async t => {
    for (const name of misspelt.split(' '))
      await refuses(t, { env: { [name]: 'x' } }, `${name} variable ${meant} security Rename to ${meant}, remove`)
  })
}

test('a variable that resembles no security setting more than any other setting gets a warning', async t => {
  const names = 'NAME VERSION ENV REGION TOKEN STORE URL API_KEYS CLIENT_ID_FILE AUTH_HOSTS'.split(' ')
  const env = Object.fromEntries(names.map(name => [`PLATFORM_${name}`, 'x']))
  const { warnings } = await load(t, { env })
  t.deepEqual(keysOf(warnings), Object.keys(env))
})

test('the variables that Kubernetes sets for a service get no warning, although they have the prefixes of settings', async t => {
  const env = {
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
  await accepts(t, { env })
  await accepts(t, { env: { PLATFORM_AUTH_PORT: '80' } }, 'PLATFORM_AUTH_PORT')
})

test("the variable names of the platform's tutorials are used if ours are missing, with a warning", async t => {
  const env = {
    PLATFORM_CLIENT_ID: '',
    PLATFORM_CLIENT_SECRET: undefined,
    PLATFORM_CALLBACK_URL: undefined,
    APS_CLIENT_ID: 'tutorial',
    APS_CLIENT_SECRET: clientSecret,
    APS_CALLBACK_URL: 'http://localhost:9090/api/auth/callback'
  }
  const { config, sources } = await accepts(
    t,
    { env },
    'platform.clientId APS_CLIENT_ID PLATFORM_CLIENT_ID not set Rename',
    'platform.clientSecret PLATFORM_CLIENT_SECRET',
    'platform.callbackUrl PLATFORM_CALLBACK_URL'
  )
  t.like(config.platform, { clientId: 'tutorial', clientSecret, callbackUrl: env.APS_CALLBACK_URL })
  t.is(sources['platform.clientId'], 'variable APS_CLIENT_ID')
})

test("the variable names of the platform's tutorials are ignored if ours are set", async t => {
  const { config } = await accepts(t, { env: { APS_CLIENT_ID: 'tutorial' } })
  t.is(config.platform.clientId, enough.PLATFORM_CLIENT_ID)
})

test('a password in a flag gets a warning that does not contain it', async t => {
  const flags = { 'redis.url': 'redis://user:hunter2@localhost' }
  const { config, warnings } = await accepts(t, { flags }, 'redis.url --redis-url password REDIS_URL REDIS_URL_FILE')
  t.is(config.redis.url?.text, 'redis://user:hunter2@localhost')
  t.false(JSON.stringify(warnings).includes('hunter2'))
  await accepts(t, { flags: { 'redis.url': 'redis://localhost' } })
  await accepts(t, { env: { REDIS_URL: 'redis://user:hunter2@localhost' } })
})
