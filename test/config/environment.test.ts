import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { ConfigError, describeProblem } from '#src/config/errors.js'
import { loadConfig, resolveSettings } from '#src/config/load.js'
import { type SettingKey, settingOf } from '#src/config/settings.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { clientSecret, enough, keysOf, linesOf, load, problemsOf, type Situation, sessionSecret } from './given.js'

const otherSecret = 'Zx8cVb5nMq1wEr4tYu7iOp0aSd3fGh6j'
const secretPath = join('run', 'secrets', 'session')

for (const [source, situation] of [
  [
    'variable SERVER_SESSION_SECRET_FILE',
    { env: { SERVER_SESSION_SECRET: '', SERVER_SESSION_SECRET_FILE: secretPath } }
  ],
  ['flag --session-secret-file', { flags: { 'session.secret': secretPath } }]
] as const) {
  test(`a ${source} names the file of a secret, whose final newline is not part of the secret`, async t => {
    for (const newline of ['', '\n', '\r\n']) {
      const { config, sources } = await load(t, { ...situation, files: { [secretPath]: `${otherSecret}${newline}` } })
      t.is(config.session.secret, otherSecret)
      t.is(sources['session.secret'], source)
    }
  })
}

const spaces = { around: ` ${otherSecret}\t`, blankLines: `\r\n${otherSecret}\n\n \n`, crlf: `${otherSecret}\r\n` }
const yamlOf = (secret: string) => ({ '.platform-auth-serverrc': `session: { secret: ${JSON.stringify(secret)} }` })

for (const [name, secret] of Object.entries(spaces)) {
  const unset = { SERVER_SESSION_SECRET: undefined }
  for (const [source, situation] of Object.entries({
    file: { env: { ...unset, SERVER_SESSION_SECRET_FILE: 's' }, files: { s: secret } },
    flag: { flags: { 'session.secret': 's' }, files: { s: secret } },
    variable: { env: { SERVER_SESSION_SECRET: secret } },
    YAML: { env: unset, files: yamlOf(secret) },
    application: { settings: { session: { secret } } }
  })) {
    test(`white space around a secret is removed from every source alike: ${source}, ${name}`, async t => {
      const { config, warnings } = await load(t, situation)
      t.is(config.session.secret, otherSecret)
      // Line breaks at the end of a file are usual.
      const isOdd = warnings.some(({ message }) => message.startsWith('begins or ends with spaces'))
      t.is(isOdd, name === 'around' || name === 'blankLines')
    })
  }
}

test('previous secrets are accepted exactly if they are accepted as the secret', async t => {
  const twoLines = `${otherSecret}\n${sessionSecret}`
  const [problem] = await problemsOf(t, { env: { SERVER_SESSION_SECRET: twoLines } })
  t.regex(
    problem?.message ?? '',
    /^cannot be used, because it contains a space or a line break, at which session\.previousSecrets would divide it\./
  )
  const listed = { '.platform-auth-serverrc': `session: { previousSecrets: [" ${otherSecret}\\n"] }` }
  t.deepEqual((await load(t, { files: listed })).config.session.previousSecrets, [otherSecret])
  const inside = { '.platform-auth-serverrc': `session: { previousSecrets: ["${twoLines.replace('\n', ' ')}"] }` }
  t.regex((await problemsOf(t, { files: inside }))[0]?.message ?? '', /because one of them contains a space/)
})

const read = (how: string) => `is read as ${how}, because`
const oddLines: readonly (readonly [line: string, warning: string | undefined])[] = [
  ['PLATFORM_CLIENT_SECRET=abc#def', `${read('3 characters')} a value without quotation marks ends at "#" here`],
  ['PLATFORM_CLIENT_ID=abc#def', `${read('"abc"')} a value without quotation marks ends at "#" here`],
  ['PLATFORM_CLIENT_SECRET=abc   ', `${read('3 characters')} white space at the end of a value is removed`],
  ['PLATFORM_CLIENT_SECRET="abc"def', `${read('3 characters')} text follows the closing quotation mark`],
  ['PLATFORM_CLIENT_SECRET=`abc`', `${read('3 characters')} only Node treats "\`" as a quotation mark`],
  ['PLATFORM_CLIENT_SECRET="a\\tc"', `${read('4 characters')} other programs treat "\\" in double quotation marks`],
  ['PLATFORM_CLIENT_SECRET=abc$HOME', `${read('8 characters')} Compose replaces "$"`],
  ['PLATFORM_CLIENT_SECRET="abc$HOME"', `${read('8 characters')} Compose replaces "$"`],
  ['PLATFORM_CLIENT_SECRET=\'"abc"\'', 'begins and ends with a quotation mark'],
  ['PLATFORM_CLIENT_SECRET=" abc"', 'begins or ends with spaces, which are removed'],
  ["PLATFORM_CLIENT_SECRET='abc$HOME#def'", undefined],
  ['PLATFORM_CLIENT_SECRET=abc # a comment with $HOME', undefined],
  ['PLATFORM_CLIENT_SECRET="abc" # a comment', undefined],
  ['export PLATFORM_CLIENT_SECRET=abc', undefined],
  // The process may use this variable for something else.
  ['OTHER=abc#def', undefined]
]

for (const [line, warning] of oddLines) {
  test(`a line of .env gets ${warning ? 'a' : 'no'} warning that other programs read it differently: ${line}`, async t => {
    const name = /\w+(?==)/.exec(line)?.[0] ?? ''
    const { warnings } = await load(t, { env: { [name]: undefined }, files: { '.env': `${line}\nPORT=9000\n` } })
    t.is(warnings.length, warning ? 1 : 0, JSON.stringify(warnings))
    t.true(warnings.every(({ message }) => message.startsWith(warning ?? '') && !/def|HOME/.test(message)))
  })
}

for (const [value, has] of [
  ['"abc"', 'quotation mark'],
  ["'abc'", 'quotation mark'],
  ['"', undefined],
  ['a"b"', undefined]
] as const) {
  test(`a secret in a variable gets ${has ? 'a' : 'no'} warning about quotation marks: ${value}`, async t => {
    const { warnings } = await load(t, { env: { PLATFORM_CLIENT_SECRET: value } })
    t.deepEqual(
      warnings.map(({ message }) => message.includes(has ?? '')),
      has ? [true] : []
    )
  })
}

for (const [value, isOdd] of [
  ['$CLIENT', true],
  ['https://$(HOST)/authorize', true],
  ['https://idp.example/a$b', false]
] as const) {
  test(`the name of a variable in a settings file gets ${isOdd ? 'a' : 'no'} warning: ${value}`, async t => {
    const key = value.startsWith('https') ? 'authorizationEndpoint' : 'clientId'
    const files = { '.platform-auth-serverrc': `platform: { ${key}: "${value}" }` }
    const { warnings, problems } = await resolveSettings({
      cwd: await tempFolder(t, files),
      env: { ...enough, PLATFORM_CLIENT_ID: undefined }
    })
    t.is(
      warnings.some(({ message }) => message.startsWith('contains the name of a variable after "$"')),
      isOdd,
      JSON.stringify(problems)
    )
  })
}

test('the variables that Kubernetes sets for a service are ignored, although they have the prefixes of settings', async t => {
  const env = {
    PLATFORM_AUTH_FORWARD_AUTH_PORT: 'tcp://10.0.0.1:4181',
    PLATFORM_SERVICE_HOST: '10.0.0.1',
    REDIS_PORT: 'tcp://10.0.0.2:6379',
    REDIS_SERVICE_HOST: '10.0.0.2',
    REDIS_PORT_6379_TCP_ADDR: '10.0.0.2'
  }
  t.deepEqual((await load(t, { env })).warnings, [])
})

test('a secret that is given both directly and as a file is refused with both names', async t => {
  const env = { SERVER_SESSION_SECRET_FILE: 'secret.txt' }
  const problems = await problemsOf(t, { env, files: { 'secret.txt': sessionSecret } })
  t.is(problems.length, 1)
  t.is(problems[0]?.source, 'variable SERVER_SESSION_SECRET')
  t.regex(
    problems[0]?.message ?? '',
    /^is also set by the variable SERVER_SESSION_SECRET_FILE\. Remove one of the two variables\.$/
  )
})

const noSecret: readonly (readonly [key: SettingKey, source: string, situation: Situation])[] = [
  // Otherwise the server would run without Redis.
  ['redis.url', 'variable REDIS_URL_FILE', { env: { REDIS_URL_FILE: 'secret.txt' } }],
  [
    'platform.clientKey',
    'variable PLATFORM_CLIENT_KEY_FILE',
    { env: { PLATFORM_CLIENT_AUTH_METHOD: 'private_key_jwt', PLATFORM_CLIENT_KEY_FILE: 'secret.txt' } }
  ],
  // A flag is refused even if another source sets the secret.
  ['platform.clientSecret', 'flag --client-secret-file', { flags: { 'platform.clientSecret': 'secret.txt' } }]
]

for (const [key, source, situation] of noSecret) {
  test(`an empty secret file is refused: ${source}`, async t => {
    const message = `cannot be read from the file secret.txt, because the file is empty. The file must contain ${settingOf(key).type.allowed}.`
    for (const content of ['', '\n', ' \n']) {
      t.deepEqual(await problemsOf(t, { ...situation, files: { 'secret.txt': content } }), [{ key, source, message }])
    }
  })
}

test('for a secret file that cannot be read, the error gives the reason', async t => {
  const missing = await problemsOf(t, {
    env: { PLATFORM_CLIENT_SECRET: undefined, PLATFORM_CLIENT_SECRET_FILE: 'no.txt' }
  })
  t.deepEqual(missing, [
    {
      key: 'platform.clientSecret',
      source: 'variable PLATFORM_CLIENT_SECRET_FILE',
      message:
        'cannot be read from the file no.txt, because there is no such file. Set it to the path of a file that contains the secret.'
    }
  ])
  const isFolder = await problemsOf(t, { env: { PLATFORM_CLIENT_SECRET: undefined, PLATFORM_CLIENT_SECRET_FILE: '.' } })
  t.regex(isFolder[0]?.message ?? '', /^cannot be read from the file \., because it is a folder\./)
})

test('the message for a missing secret file contains its path, if the path cannot be a secret', async t => {
  const files = { 'secrets/other.txt': '' }
  const messageFor = async (path: string) => {
    const env = { SERVER_SESSION_SECRET: undefined, SERVER_SESSION_SECRET_FILE: path }
    return (await problemsOf(t, { env, files }))[0]?.message
  }
  const advice = 'because there is no such file. Set it to the path of a file that contains the secret.'
  for (const path of ['secrets/session', './session', '/dev/shm/no/session', 'session.txt', 'no-folder/session.key']) {
    t.is(await messageFor(path), `cannot be read from the file ${path}, ${advice}`)
  }
  for (const path of ['session', 'no-folder/session', '/session']) {
    t.is(await messageFor(path), `cannot be read from a file, ${advice}`)
  }
})

test('a secret that was given instead of the name of its file is not printed', async t => {
  for (const secret of [sessionSecret, `${sessionSecret}/${sessionSecret}`, `/${sessionSecret}`, 'x'.repeat(5000)]) {
    const env = { SERVER_SESSION_SECRET: undefined, SERVER_SESSION_SECRET_FILE: secret }
    const [problem] = await problemsOf(t, { env })
    t.is(problem?.source, 'variable SERVER_SESSION_SECRET_FILE')
    t.regex(
      problem?.message ?? '',
      /^cannot be read from a file, because .*\. Set it to the path of a file that contains the secret\.$/
    )
    t.false(JSON.stringify(problem).includes(secret))
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
    const problem = error?.problems.find(problem => problem.key === key)
    t.regex(problem?.source ?? '', / in \.env$/)
    t.regex(
      problem?.message ?? '',
      /^has more than one line, perhaps because a closing quotation mark is missing\. Set it to /
    )
    for (const secret of [clientSecret, sessionSecret]) t.false(error?.message.includes(secret))
  })
}

test('a variable of the process may have several lines, as in a block of YAML', async t => {
  const { config } = await load(t, { env: { PLATFORM_SCOPES: 'data:read\nviewables:read\n' } })
  t.deepEqual(config.platform.scopes, ['data:read', 'viewables:read'])
})

test('.env may use the line ends \\n, \\r\\n and \\r', async t => {
  const lines = ['LOG_LEVEL=debug', `PLATFORM_CLIENT_SECRET=${clientSecret}`, 'PORT=9000', '']
  for (const newline of ['\r', '\r\n', '\n']) {
    const files = { '.env': lines.join(newline) }
    const { config } = await load(t, { env: { PLATFORM_CLIENT_SECRET: undefined }, files })
    t.is(config.log.level, 'debug')
    t.is(config.platform.clientSecret, clientSecret)
    t.is(config.port, 9000)
  }
})

test('a byte order mark at the beginning of .env or of a secret file is ignored', async t => {
  const env = { PLATFORM_CLIENT_SECRET: undefined, PLATFORM_CLIENT_SECRET_FILE: 'secret.txt' }
  const files = { '.env': '\uFEFFPORT=9000\r\n', 'secret.txt': `\uFEFF${clientSecret}\r\n` }
  const { config } = await load(t, { env, files })
  t.is(config.port, 9000)
  t.is(config.platform.clientSecret, clientSecret)
})

test('a file in UTF-16 is refused with its name', async t => {
  const env = { PLATFORM_CLIENT_SECRET: undefined, PLATFORM_CLIENT_SECRET_FILE: 'secret.txt' }
  for (const mark of ['\uFEFF', '']) {
    const files = {
      '.env': Buffer.from(`${mark}PORT=9000\r\n`, 'utf16le'),
      'secret.txt': Buffer.from(`${mark}${clientSecret}\r\n`, 'utf16le')
    }
    t.deepEqual(linesOf(await problemsOf(t, { env, files })), [
      '.env cannot be read, because it is not encoded in UTF-8.',
      'platform.clientSecret cannot be read from the file secret.txt, because it is not encoded in UTF-8. Set it to the path of a file that contains the secret.'
    ])
  }
})

test('a variable in .env with a colon instead of the equals sign is reported without its value', async t => {
  const message = 'must be followed directly by an equals sign (=).'
  const { warnings } = await load(t, { files: { '.env': `PLATFORM_CLIENT_ID: ${clientSecret}=` } })
  t.deepEqual(warnings, [{ key: 'PLATFORM_CLIENT_ID', source: 'variable PLATFORM_CLIENT_ID in .env', message }])
  const problems = await problemsOf(t, { files: { '.env': `PLATFORM_CLIENT_SECRET: ${clientSecret}=` } })
  t.deepEqual(problems, [{ key: 'PLATFORM_CLIENT_SECRET', source: 'variable PLATFORM_CLIENT_SECRET in .env', message }])
})

test('a folder called .env is ignored', async t => {
  const { config } = await load(t, { files: { '.env/bin/python': '' } })
  t.is(config.port, 8080)
})

test('a .env file that cannot be read is an error', async t => {
  const cwd = await tempFolder(t)
  await symlink('.env', join(cwd, '.env'))
  const error = await t.throwsAsync(loadConfig({ cwd, env: enough }))
  t.regex(error?.message ?? '', /\.env \(working directory\) cannot be read, because its symlinks lead in a circle\./)
})

test('the environment and the working directory of the process are used by default', async t => {
  const error = await t.throwsAsync(loadConfig({ flags: { port: 'x' } }))
  t.regex(error?.message ?? '', /port \(flag --port\)/)
})

test('an unknown variable with one of our prefixes gets a warning with the most similar name', async t => {
  const env = {
    PLATFORM_AUTH_MOD: 'dual',
    PLATFORM_CALLBACK_URI: 'x',
    INTERNAL_TOKEN_SCOPE: 'data:read',
    SERVER_SESION_SECRET: 'not ours to judge',
    PLATFORM_QQQQQQQQQQQQQQQQQQQQQQ: 'x'
  }
  const { warnings } = await load(t, { env, files: { '.env': 'PLATFORM_CLIENT_IDD=x' } })
  t.deepEqual(warnings.map(describeProblem), [
    'PLATFORM_CLIENT_IDD (variable PLATFORM_CLIENT_IDD in .env) is not a setting of this server. Did you mean PLATFORM_CLIENT_ID?',
    'PLATFORM_AUTH_MOD (variable PLATFORM_AUTH_MOD) is not a setting of this server. Did you mean PLATFORM_AUTH_MODE?',
    'PLATFORM_CALLBACK_URI (variable PLATFORM_CALLBACK_URI) is not a setting of this server. Did you mean PLATFORM_CALLBACK_URL?',
    'INTERNAL_TOKEN_SCOPE (variable INTERNAL_TOKEN_SCOPE) is not a setting of this server. Did you mean INTERNAL_TOKEN_SCOPES?',
    'PLATFORM_QQQQQQQQQQQQQQQQQQQQQQ (variable PLATFORM_QQQQQQQQQQQQQQQQQQQQQQ) is not a setting of this server.'
  ])
})

for (const [misnamed, meant] of [
  ['PLATFORM_AUTH_PORT', 'PORT'],
  ['PLATFORM_PORT', 'PORT'],
  ['PLATFORM_AUTH_LOG_LEVEL', 'LOG_LEVEL'],
  ['PLATFORM_AUTH_CLIENT_ID', 'PLATFORM_CLIENT_ID'],
  ['PLATFORM_LOGOUT_IDP', 'PLATFORM_AUTH_LOGOUT_IDP'],
  ['PLATFORM_METRIC_ADDRESS', 'PLATFORM_AUTH_METRICS_ADDRESS'],
  ['PLATFORM_INTERNAL_TOKEN_SCOPES', 'INTERNAL_TOKEN_SCOPES'],
  ['REDIS_URI', 'REDIS_URL'],
  ['LOG_REQUEST', 'LOG_REQUESTS']
] as const) {
  test(`a variable with the wrong prefix is recognised: ${misnamed}`, async t => {
    const { warnings } = await load(t, { env: { [misnamed]: 'x' } })
    t.is(warnings[0]?.message, `is not a setting of this server. Did you mean ${meant}?`)
  })
}

for (const [misspelt, meant] of [
  ['PLATFORM_AUTH_ACCES_ALLOW', 'PLATFORM_AUTH_ACCESS_ALLOW'],
  ['PLATFORM_ACCESS_ALLOW', 'PLATFORM_AUTH_ACCESS_ALLOW'],
  ['PLATFORM_AUTH_ALLOW', 'PLATFORM_AUTH_ACCESS_ALLOW'],
  ['PLATFORM_ALLOW', 'PLATFORM_AUTH_ACCESS_ALLOW'],
  ['PLATFORM_AUTH_ALLOWED', 'PLATFORM_AUTH_ACCESS_ALLOW'],
  ['PLATFORM_AUTH_ACCESS_ALLOWED', 'PLATFORM_AUTH_ACCESS_ALLOW'],
  ['PLATFORM_AUTH_ACCESSALLOW', 'PLATFORM_AUTH_ACCESS_ALLOW'],
  ['PLATFORM_AUTH_ACCESS', 'PLATFORM_AUTH_ACCESS_ALLOW'],
  ['PLATFORM_AUTH_ACCESS_ALLOW_LIST', 'PLATFORM_AUTH_ACCESS_ALLOW'],
  ['PLATFORM_AUTH_ACCESS_FILE', 'PLATFORM_AUTH_ACCESS_FILES'],
  ['PLATFORM_AUTH_ACCES_FILES', 'PLATFORM_AUTH_ACCESS_FILES'],
  ['PLATFORM_AUTH_ACCESSFILES', 'PLATFORM_AUTH_ACCESS_FILES'],
  ['PLATFORM_ACCESS_FILES', 'PLATFORM_AUTH_ACCESS_FILES'],
  ['PLATFORM_AUTH_FILES', 'PLATFORM_AUTH_ACCESS_FILES'],
  ['platform_auth_access_allow', 'PLATFORM_AUTH_ACCESS_ALLOW'],
  ['Platform_Auth_Acess_Alow', 'PLATFORM_AUTH_ACCESS_ALLOW'],
  ['PLATFORM_FORWARD_AUTH_ADDRESS', 'PLATFORM_AUTH_FORWARD_AUTH_ADDRESS'],
  ['PLATFORM_AUTH_FORWARD_ADDRESS', 'PLATFORM_AUTH_FORWARD_AUTH_ADDRESS'],
  ['PLATFORM_AUTH_SESION_INACTIVITY_TIMEOUT', 'PLATFORM_AUTH_SESSION_INACTIVITY_TIMEOUT'],
  ['PLATFORM_AUTH_SESSION_SECRET', 'SERVER_SESSION_SECRET'],
  ['PLATFORM_SESSION_SECRET_FILE', 'SERVER_SESSION_SECRET_FILE'],
  ['PLATFORM_SECRET', 'PLATFORM_CLIENT_SECRET'],
  ['PLATFORM_REDIS_URL', 'REDIS_URL']
] as const) {
  test(`a variable that resembles a security setting is an error: ${misspelt}`, async t => {
    const problems = await problemsOf(t, { env: { [misspelt]: 'x' } })
    const message = `is not a setting of this server, but resembles ${meant}, a security setting. Rename it to ${meant}, or remove it.`
    t.deepEqual(problems, [{ key: misspelt, source: `variable ${misspelt}`, message }])
  })
}

test('a variable that resembles no security setting more than any other setting gets a warning', async t => {
  const names = 'NAME VERSION ENV REGION TOKEN STORE URL API_KEYS CLIENT_ID_FILE AUTH_HOSTS'.split(' ')
  const env = Object.fromEntries(names.map(name => [`PLATFORM_${name}`, 'x']))
  const { warnings } = await load(t, { env })
  t.deepEqual(keysOf(warnings), Object.keys(env))
})

test('the variables that Kubernetes sets for a service named platform-auth get no warning', async t => {
  const env = {
    PLATFORM_AUTH_SERVICE_HOST: '10.0.0.1',
    PLATFORM_AUTH_SERVICE_PORT: '80',
    PLATFORM_AUTH_SERVICE_PORT_HTTP: '80',
    PLATFORM_AUTH_PORT: 'tcp://10.0.0.1:80',
    PLATFORM_AUTH_PORT_80_TCP: 'tcp://10.0.0.1:80',
    PLATFORM_AUTH_PORT_80_TCP_PROTO: 'tcp'
  }
  t.deepEqual((await load(t, { env })).warnings, [])
  t.is((await load(t, { env: { PLATFORM_AUTH_PORT: '80' } })).warnings.length, 1)
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
  const { config, sources, warnings } = await load(t, { env })
  t.is(config.platform.clientId, 'tutorial')
  t.is(config.platform.clientSecret, clientSecret)
  t.is(config.platform.callbackUrl, 'http://localhost:9090/api/auth/callback')
  t.is(sources['platform.clientId'], 'variable APS_CLIENT_ID')
  t.deepEqual(keysOf(warnings), ['platform.clientId', 'platform.clientSecret', 'platform.callbackUrl'])
  t.is(
    warnings[0]?.message,
    'is used because PLATFORM_CLIENT_ID is not set. Rename the variable to PLATFORM_CLIENT_ID.'
  )
})

test("the variable names of the platform's tutorials are ignored if ours are set", async t => {
  const { config, warnings } = await load(t, { env: { APS_CLIENT_ID: 'tutorial' } })
  t.is(config.platform.clientId, enough.PLATFORM_CLIENT_ID)
  t.deepEqual(warnings, [])
})

test('a password in a flag gets a warning that does not contain it', async t => {
  const { config, warnings } = await load(t, { flags: { 'redis.url': 'redis://user:hunter2@localhost' } })
  t.is(config.redis.url?.text, 'redis://user:hunter2@localhost')
  t.is(warnings[0]?.source, 'flag --redis-url')
  t.deepEqual(linesOf(warnings), [
    'redis.url contains a password that every process on this machine can read. Use the variable REDIS_URL or REDIS_URL_FILE instead.'
  ])
  t.deepEqual((await load(t, { flags: { 'redis.url': 'redis://localhost' } })).warnings, [])
  t.deepEqual((await load(t, { env: { REDIS_URL: 'redis://user:hunter2@localhost' } })).warnings, [])
})
