import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { writeNew } from '#src/cli/init/files.js'
import { main } from '#src/cli/main.js'
import { checkValue } from '#src/config/check-value.js'
import { loadConfig } from '#src/config/load.js'
import { keysOf } from '../config/given.js'
import { eventually } from '../helpers/eventually.js'
import { modes } from '../helpers/modes.js'
import { readText } from '../helpers/repository.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { run, shell } from './shell.js'

const settingsFile = 'platform-auth-server.config.yaml'

/** A person at a terminal who types each answer when its question appears. */
async function person(t: ExecutionContext, cwd: string, answers: readonly string[], args: readonly string[] = []) {
  const console = await shell(t, ['init', ...args], { cwd, isTTY: true })
  const ended = main(console.terminal)
  let seen = 0
  const isAsked = () => console.output().slice(seen).includes(': ')
  for (const answer of answers) {
    await eventually(isAsked)
    // A question ends with ": ". All output after it belongs to the next question.
    seen = console.output().length
    console.terminal.stdin.write(answer)
    await eventually(() => console.output().length > seen || answer === '\u0004')
  }
  return { code: await ended, output: console.output(), errors: console.errors() }
}

/** Runs `init --yes` in a new folder with `files`, as on a terminal. */
async function init(t: ExecutionContext, args: readonly string[] = [], files: Readonly<Record<string, string>> = {}) {
  const cwd = await tempFolder(t, files)
  return run(t, ['init', '--yes', ...args], { cwd, isTTY: true })
}

test('init --yes asks nothing, writes a settings file and a .env file, and says so', async t => {
  const { cwd, code, output, errors } = await init(t)
  t.deepEqual([code, errors], [0, ''])
  t.true(output.startsWith(`Wrote ${settingsFile} and .env.\nOnly your user can read .env,`), output)
  t.deepEqual((await readdir(cwd)).toSorted(), ['.env', settingsFile])
})

test('the settings file of init has its schema, only the given settings, and the places where the others are explained', async t => {
  const { cwd } = await init(t, ['--mode', 'dual', '--client-id', 'me'])
  const text = await readFile(join(cwd, settingsFile), 'utf8')
  t.deepEqual(text.match(/^ *\w+:.*$/gm), [
    'mode: dual',
    'port: 8080',
    'session:',
    '  maxLifetime: 30d',
    'platform:',
    '  clientId: me',
    '  callbackUrl: http://localhost:8080/api/auth/callback',
    'refresh:',
    '  beforeExpiry: 2m',
    '  jitter: 25m'
  ])
  const [schema = '', ...more] = text.split('\n')
  t.true(readText('docs/reference/configuration.md').includes(`\n${schema}\n`), schema)
  t.true(more.length < 33, text)
  t.true(text.includes('npx platform-auth-server --help all'))
  for (const [, path = ''] of text.matchAll(/node_modules\/platform-auth-server\/([\w./-]+\w)/g))
    t.truthy(readText(path), path)
})

test('init writes a .env file that only its owner can read, with a new secret each time', async t => {
  const secrets = new Set<string | undefined>()
  for (const cwd of [await tempFolder(t), await tempFolder(t)]) {
    await run(t, ['init', '--yes'], { cwd })
    t.is((await stat(join(cwd, '.env'))).mode & 0o777, 0o600)
    secrets.add(parseEnv(await readFile(join(cwd, '.env'), 'utf8')).SERVER_SESSION_SECRET)
  }
  t.is(secrets.size, 2)
  for (const secret of secrets) t.is(secret?.length, 64)
})

test('init writes the address of Redis into the .env file, because it may contain a password', async t => {
  const cwd = await tempFolder(t)
  const redisUrl = 'redis://:Zq81kd@redis.internal:6379'
  await run(t, ['init', '--yes', '--redis-url', redisUrl], { cwd })
  t.is(parseEnv(await readFile(join(cwd, '.env'), 'utf8')).REDIS_URL, redisUrl)
  t.notRegex(await readFile(join(cwd, settingsFile), 'utf8'), /Zq81kd/)
})

test('init reads a .env file with a byte order mark and Windows line ends', async t => {
  const { errors } = await init(t, [], { '.env': '\uFEFFSERVER_SESSION_SECRET=x\r\nPLATFORM_CLIENT_SECRET=y\r\n' })
  t.is(errors, '.env exists already and was not changed.\n')
})

for (const mode of modes) {
  test(`in ${mode} mode, a server starts with the files of init once the client id and the client secret are filled in`, async t => {
    const cwd = await tempFolder(t)
    await run(t, ['init', '--yes', '--mode', mode, '--port', '9000'], { cwd })
    const env = { PLATFORM_CLIENT_ID: 'me', PLATFORM_CLIENT_SECRET: 'abc' }
    const { config, warnings } = await loadConfig({ cwd, env })
    t.deepEqual(keysOf(warnings), ['access.allow'])
    t.like(config, { mode, port: 9000, refresh: { beforeExpirySeconds: 120, jitterSeconds: 1500 } })
    t.is(config.platform.callbackUrl, 'http://localhost:9000/api/auth/callback')
  })
}

test('the server does not start until the placeholder of init is replaced', async t => {
  const { cwd } = await init(t)
  const { code, errors } = await run(t, [], { cwd })
  t.is(code, 2)
  t.regex(errors, /platform\.clientId \(file platform-auth-server\.config\.yaml\)/)
  t.regex(errors, /platform\.clientSecret \(variable PLATFORM_CLIENT_SECRET in \.env\) is empty/)
})

test('init uses the values of flags, including secrets from files', async t => {
  const cwd = await tempFolder(t, { 'client.txt': 'p#q "r" \'s\'\n' })
  const flags = ['--client-id', 'me', '--callback-url', 'https://a.example/api/auth/callback', '--log-level', 'warn']
  await run(t, ['init', '--yes', ...flags, '--client-secret-file', 'client.txt'], { cwd })
  const { config } = await loadConfig({ cwd, env: {} })
  t.is(config.platform.clientId, 'me')
  t.is(config.platform.clientSecret, 'p#q "r" \'s\'')
  t.is(config.platform.callbackUrl, 'https://a.example/api/auth/callback')
  t.is(config.log.level, 'warn')
  t.false((await readFile(join(cwd, settingsFile), 'utf8')).includes('p#q'))
})

test('init reports a wrong flag value before it writes any file', async t => {
  const { cwd, code, errors } = await init(t, ['--port', 'x', '--client-secret-file', 'no.txt'])
  t.is(code, 2)
  t.regex(errors, /port \(flag --port\) cannot be the string "x"\./)
  t.regex(errors, /platform\.clientSecret \(flag --client-secret-file\) cannot be read from /)
  t.deepEqual(await readdir(cwd), [])
})

test('init reports a secret that cannot be written into a .env file before it writes any file', async t => {
  const { cwd, code, errors } = await init(t, ['--client-secret-file', 'client.txt'], { 'client.txt': 'a"b\'c`d#e' })
  t.is(code, 2)
  t.regex(errors, /PLATFORM_CLIENT_SECRET_FILE/)
  t.false(errors.includes('a"b'))
  t.deepEqual(await readdir(cwd), ['client.txt'])
})

test('init does not change existing files', async t => {
  const files = { [settingsFile]: 'mode: dual\n', '.env': 'SERVER_SESSION_SECRET=mine\n' }
  const { cwd, code, output, errors } = await init(t, [], files)
  t.is(code, 0)
  t.is(output, '')
  t.is(
    errors,
    `${settingsFile} exists already and was not changed.\n.env exists already and was not changed. It does not set PLATFORM_CLIENT_SECRET.\n`
  )
  for (const [name, text] of Object.entries(files)) t.is(await readFile(join(cwd, name), 'utf8'), text)
})

test('if .env is a folder, init writes the settings file and lists the secrets that must be set elsewhere', async t => {
  const { cwd, code, errors } = await init(t, [], { '.env/bin/python': '' })
  t.is(code, 0)
  t.is(
    errors,
    '.env is a folder, so no secrets were written. Set SERVER_SESSION_SECRET and PLATFORM_CLIENT_SECRET in the environment.\n'
  )
  t.deepEqual((await readdir(cwd)).toSorted(), ['.env', settingsFile])
})

test('writeNew() does not overwrite a file that was created in the meantime', async t => {
  const cwd = await tempFolder(t, { '.env': 'mine' })
  t.false(await writeNew(join(cwd, '.env'), 'ours'))
  t.is(await readFile(join(cwd, '.env'), 'utf8'), 'mine')
})

test('init does not write a settings file if one with another valid name exists', async t => {
  const { cwd, errors } = await init(t, [], { '.platform-auth-serverrc.json': '{}' })
  t.regex(errors, /^\.platform-auth-serverrc\.json exists already/)
  t.deepEqual((await readdir(cwd)).toSorted(), ['.env', '.platform-auth-serverrc.json'])
})

test('without a terminal init asks nothing and prints the remaining steps', async t => {
  const cwd = await tempFolder(t)
  const { code, output } = await run(t, ['init'], { cwd })
  t.is(code, 0)
  t.deepEqual(output.trimEnd().split('\n'), [
    `Wrote ${settingsFile} and .env.`,
    'Only your user can read .env, because it contains the secrets.',
    'Before you put this folder under version control, add .env to .gitignore.',
    `1. Put the client id into ${settingsFile}.`,
    `2. Put who may sign in into ${settingsFile} (access.allow).`,
    '3. Put the client secret into .env.',
    '4. Register http://localhost:8080/api/auth/callback as a callback URL with the provider.',
    '5. Test the settings: npx platform-auth-server check',
    '6. Start: npx platform-auth-server'
  ])
})

const added = 'Added .env to .gitignore.'
const notInGit = 'Before you put this folder under version control, add .env to .gitignore.'

const repositories: Readonly<
  Record<string, readonly [files: Record<string, string>, after: string | undefined, says: string]>
> = {
  lines: [{ '.gitignore': 'node_modules\n' }, 'node_modules\n.env\n', added],
  'no line break at the end': [{ '.gitignore': 'node_modules' }, 'node_modules\n.env\n', added],
  'an empty file': [{ '.gitignore': '' }, '.env\n', added],
  'an entry for this folder': [{ '.gitignore': '/.env\n' }, '/.env\n', ''],
  'an entry with a star': [{ '.gitignore': '.env*\n' }, '.env*\n', ''],
  'a repository without a .gitignore': [{ '.git/HEAD': '' }, '.env\n', added],
  'a repository above': [{ '../.git/HEAD': '' }, '.env\n', added],
  'an entry in the folder above': [{ '../.git/HEAD': '', '../.gitignore': '.env\n' }, undefined, ''],
  'an entry only for the folder above': [{ '../.git': '', '../.gitignore': '/.env\n' }, '.env\n', added],
  'a .gitignore above, but no repository': [{ '../.gitignore': '.env\n' }, undefined, notInGit],
  'a folder with the name .gitignore': [{ '.git/HEAD': '', '.gitignore/keep': '' }, undefined, notInGit],
  'no repository': [{}, undefined, notInGit]
}

for (const [name, [files, after, says]] of Object.entries(repositories)) {
  test(`without questions, init adds .env to .gitignore in a repository that does not ignore it: ${name}`, async t => {
    const cwd = join(await tempFolder(t, { 'app/keep': '', ...inFolder('app', files) }), 'app')
    const { output } = await run(t, ['init', '--yes'], { cwd })
    t.is(await readFile(join(cwd, '.gitignore'), 'utf8').catch(() => undefined), after)
    for (const text of [added, notInGit]) t.is(output.includes(text), text === says, text)
  })
}

function inFolder(folder: string, files: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([path, text]) => [join(folder, path), text]))
}

for (const [answer, after] of [
  ['\n', '.env\n'],
  ['no\n', undefined]
] as const) {
  test(`on a terminal, init asks before it adds .env to .gitignore: ${JSON.stringify(answer)}`, async t => {
    const cwd = await tempFolder(t, { [settingsFile]: '' })
    const { code, output } = await person(t, cwd, ['\n', 'perhaps\n', answer])
    t.is(code, 0)
    t.regex(output, /Add \.env to \.gitignore, so that the secrets stay out of git \(yes or no\) \[yes\]: /)
    t.regex(output, /The answer must be yes or no\./)
    t.is(await readFile(join(cwd, '.gitignore'), 'utf8').catch(() => undefined), after)
    t.is(output.includes(after === undefined ? notInGit : added), true)
  })
}

test('on a terminal init asks for the settings, offers defaults, and repeats a question after an invalid answer', async t => {
  const cwd = await tempFolder(t)
  const answers = [
    'both\n',
    'dual\n',
    '\n',
    'me\n',
    'https://a.example/\n',
    'https://a.example/api/auth/callback\n',
    'example.com\n',
    'ada@example.com @team.example\n',
    'c1ient\n',
    'yes\n'
  ]
  const { code, output } = await person(t, cwd, answers)
  t.is(code, 0)
  t.regex(output, /The answer cannot be the string "both"\. Set it to single or dual\./)
  t.regex(output, /its path does not end in \/api\/auth\/callback/)
  t.regex(output, /Callback URL \[http:\/\/localhost:8080\/api\/auth\/callback\]: /)
  t.regex(output, /1\. Register https:\/\/a\.example\/api\/auth\/callback/)
  const { config } = await loadConfig({ cwd, env: {} })
  t.is(config.mode, 'dual')
  t.is(config.port, 8080)
  t.is(config.platform.clientId, 'me')
  t.is(config.platform.clientSecret, 'c1ient')
  t.regex(output, /"example\.com" is not an e-mail address, a domain that begins with @/)
  const allowed = config.access.allow?.map(({ text }) => text)
  t.deepEqual(allowed, ['ada@example.com', '@team.example'])
})

test('init does not show the client secret while it is typed', async t => {
  const cwd = await tempFolder(t, { [settingsFile]: '' })
  const { output } = await person(t, cwd, ['hunter2hunter2\n', '\n'])
  t.regex(output, /Client secret \(not shown/)
  t.false(output.includes('hunter2'))
  t.is(parseEnv(await readFile(join(cwd, '.env'), 'utf8')).PLATFORM_CLIENT_SECRET, 'hunter2hunter2')
})

test('init does not ask for settings that were given as flags', async t => {
  const cwd = await tempFolder(t, { '.env': '' })
  const args = ['--mode', 'single', '--client-id', 'me', '--callback-url', 'https://a.example/api/auth/callback']
  const { output } = await person(t, cwd, ['\n', '\n'], args)
  t.regex(output, /Port \[8080\]/)
  t.notRegex(output, /Mode|Client id|Callback URL/)
})

for (const [name, key] of [
  ['Ctrl-C', '\u0003'],
  ['Ctrl-D', '\u0004']
] as const) {
  test(`${name} ends init without writing a file`, async t => {
    const cwd = await tempFolder(t)
    const { code, errors } = await person(t, cwd, ['dual\n', key])
    t.is(code, 1)
    t.regex(errors, /No file was written/)
    t.deepEqual(await readdir(cwd), [])
  })
}

test('secret prints a different session secret each time, and the server accepts it', async t => {
  const [one, other] = [await run(t, ['secret']), await run(t, ['secret'])]
  t.is(one.code, 0)
  t.regex(one.output, /^[A-Za-z0-9_-]{64}\n$/)
  t.not(one.output, other.output)
  t.deepEqual(checkValue('session.secret', one.output.trim()), { value: one.output.trim() })
})
