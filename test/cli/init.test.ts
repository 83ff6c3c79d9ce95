import { spawnSync } from 'node:child_process'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { writeNew } from '#src/cli/init/files.js'
import { main } from '#src/cli/main.js'
import { checkValue } from '#src/config/check-value.js'
import { loadConfig } from '#src/config/load.js'
import { ConfigError } from '#src/config/types/problem.js'
import { keysOf } from '../config/given.js'
import { eventually } from '../helpers/eventually.js'
import { carries } from '../helpers/messages.js'
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
  const result = await run(t, ['init', '--yes', ...args], { cwd, isTTY: true })
  return { ...result, names: (await readdir(cwd)).toSorted() }
}

/** Returns the content of a file. Undefined if there is none. */
function contentOf(cwd: string, name: string): Promise<string | undefined> {
  return readFile(join(cwd, name), 'utf8').catch(() => undefined)
}

/** Returns the variables that the file .env sets. */
async function dotEnvOf(cwd: string) {
  return parseEnv((await contentOf(cwd, '.env')) ?? '')
}

test('the settings file of init has its schema, only the given settings, and the places where the others are explained', async t => {
  const { cwd } = await init(t, ['--mode', 'dual', '--client-id', 'me'])
  const text = (await contentOf(cwd, settingsFile)) ?? ''
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
  for (const { cwd } of [await init(t), await init(t)]) {
    t.is((await stat(join(cwd, '.env'))).mode & 0o777, 0o600)
    secrets.add((await dotEnvOf(cwd)).SERVER_SESSION_SECRET)
  }
  t.is(secrets.size, 2)
  for (const secret of secrets) t.is(secret?.length, 64)
})

test('a server starts with the files of init once the client id and the client secret are filled in', async t => {
  const { cwd } = await init(t, ['--mode', 'dual', '--port', '9000'])
  const error = await t.throwsAsync(loadConfig({ cwd, env: {} }), { instanceOf: ConfigError })
  t.deepEqual(keysOf(error?.problems), ['platform.clientId', 'platform.clientSecret'])
  const { config, warnings } = await loadConfig({
    cwd,
    env: { PLATFORM_CLIENT_ID: 'me', PLATFORM_CLIENT_SECRET: 'abc' }
  })
  t.deepEqual(keysOf(warnings), ['access.allow'])
  t.like(config, { mode: 'dual', port: 9000, refresh: { beforeExpirySeconds: 120, jitterSeconds: 1500 } })
  t.is(config.platform.callbackUrl, 'http://localhost:9000/api/auth/callback')
})

test('init uses the values of flags, and writes secrets and the URL of Redis, which may contain one, only into .env', async t => {
  const callbackUrl = 'https://a.example/api/auth/callback'
  const clientSecret = 'p#q "r" \'s\''
  const redisUrl = 'redis://:Zq81kd@redis.internal:6379'
  const flags = ['--client-id', 'me', '--callback-url', callbackUrl, '--redis-url', redisUrl]
  const { cwd } = await init(t, [...flags, '--client-secret-file', 'client.txt'], { 'client.txt': `${clientSecret}\n` })
  const { config } = await loadConfig({ cwd, env: {} })
  t.like(config, { platform: { clientId: 'me', clientSecret, callbackUrl }, redis: { url: { text: redisUrl } } })
  t.notRegex((await contentOf(cwd, settingsFile)) ?? '', /p#q|Zq81kd/)
})

test('init reports a wrong flag value before it writes any file', async t => {
  const { names, code, errors } = await init(t, ['--port', 'x', '--client-secret-file', 'no.txt'])
  t.is(code, 2)
  carries(t, errors, 'port --port platform.clientSecret --client-secret-file')
  t.deepEqual(names, [])
})

test('init reports a secret that cannot be written into a .env file before it writes any file', async t => {
  const files = { 'client.txt': 'a"b\'c`d#e' }
  const { names, code, errors } = await init(t, ['--client-secret-file', 'client.txt'], files)
  t.is(code, 2)
  t.regex(errors, /PLATFORM_CLIENT_SECRET_FILE/)
  t.false(errors.includes('a"b'))
  t.deepEqual(names, ['client.txt'])
})

test('init does not change existing files', async t => {
  const files = { [settingsFile]: 'mode: dual\n', '.env': 'SERVER_SESSION_SECRET=mine\n' }
  const { cwd, code, output, errors } = await init(t, [], files)
  t.deepEqual([code, output], [0, ''])
  carries(t, errors, `${settingsFile} exists .env exists`)
  for (const [name, text] of Object.entries(files)) t.is(await contentOf(cwd, name), text)
})

test('writeNew() does not overwrite a file that was created in the meantime', async t => {
  const cwd = await tempFolder(t, { '.env': 'mine' })
  t.false(await writeNew(join(cwd, '.env'), 'ours'))
  t.is(await contentOf(cwd, '.env'), 'mine')
})

test('init does not write a settings file if one with another valid name exists', async t => {
  const { names, errors } = await init(t, [], { '.platform-auth-serverrc.json': '{}' })
  carries(t, errors, '.platform-auth-serverrc.json exists')
  t.deepEqual(names, ['.env', '.platform-auth-serverrc.json'])
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
  'an entry with a star': [{ '.gitignore': '.env*\n' }, '.env*\n', ''],
  'no .gitignore': [{}, '.env\n', added],
  'an entry in the folder above': [{ '../.gitignore': '.env\n' }, undefined, ''],
  'an entry only for the folder above': [{ '../.gitignore': '/.env\n' }, '.env\n', added],
  'a folder with the name .gitignore': [{ '.gitignore/keep': '' }, undefined, notInGit]
}

for (const [name, [files, after, says]] of Object.entries(repositories)) {
  test(`without questions, init adds .env to .gitignore in a repository that does not ignore it: ${name}`, async t => {
    const inApp = Object.entries(files).map(([path, text]) => [join('app', path), text])
    const root = await tempFolder(t, { 'app/keep': '', ...Object.fromEntries(inApp) })
    spawnSync('git', ['init', '--quiet', root])
    const cwd = join(root, 'app')
    const { output } = await run(t, ['init', '--yes'], { cwd })
    t.is(await contentOf(cwd, '.gitignore'), after)
    for (const text of [added, notInGit]) t.is(output.includes(text), text === says, text)
  })
}

test('outside of a repository, init leaves .gitignore as it is, also without questions', async t => {
  const { cwd, output } = await run(t, ['init', '--yes'], { files: { '.gitignore': 'node_modules\n' } })
  t.is(await contentOf(cwd, '.gitignore'), 'node_modules\n')
  t.true(output.includes(notInGit))
})

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
    'c1ient\n'
  ]
  const { code, output } = await person(t, cwd, answers)
  t.is(code, 0)
  carries(t, output, 'answer single dual path end /api/auth/callback entry not e-mail domain @')
  carries(t, output, 'Callback URL [http://localhost:8080/api/auth/callback]: 1. https://a.example/api/auth/callback')
  const { config } = await loadConfig({ cwd, env: {} })
  t.like(config, { mode: 'dual', port: 8080, platform: { clientId: 'me', clientSecret: 'c1ient' } })
  const allowed = config.access.allow?.map(({ text }) => text)
  t.deepEqual(allowed, ['ada@example.com', '@team.example'])
})

test('init does not show the client secret while it is typed', async t => {
  const cwd = await tempFolder(t, { [settingsFile]: '' })
  const { output } = await person(t, cwd, ['hunter2hunter2\n'])
  t.regex(output, /Client secret \(not shown/)
  t.false(output.includes('hunter2'))
  t.is((await dotEnvOf(cwd)).PLATFORM_CLIENT_SECRET, 'hunter2hunter2')
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
