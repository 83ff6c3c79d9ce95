import { randomBytes } from 'node:crypto'
import test from 'ava'
import { newSecret, sessionSecret as sessionSecretType } from '#src/config/types/secrets.js'
import { accepts, clientSecret, enough, load, refuses, type Situation, sessionSecret } from './given.js'
import { testSituations } from './messages.js'

const otherSecret = 'Zx8cVb5nMq1wEr4tYu7iOp0aSd3fGh6j'
const rcFile = '.platform-auth-serverrc'
const sessionSecretIn = (path: string) => ({ SERVER_SESSION_SECRET: undefined, SERVER_SESSION_SECRET_FILE: path })

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

const noAssignments = [
  ' \t',
  'LOG_LEVEL=debug',
  '  # a comment with no assignment',
  'export PORT = 9000',
  'OTHER="no assignment',
  'no assignment" # nonsense',
  clientSecret
]

testSituations('dot-env')
testSituations('variables')

test('a path that exists is no session secret', t =>
  refuses(
    t,
    { env: { SERVER_SESSION_SECRET: process.execPath.padStart(32, '/') } },
    'session.secret reference path _FILE'
  ))

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
