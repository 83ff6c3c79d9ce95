import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { writeNew } from '#src/cli/init/files.js'
import { main } from '#src/cli/main.js'
import { loadConfig } from '#src/config/load.js'
import { eventually } from '../helpers/eventually.js'
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

test('init --yes asks and prints nothing and writes a settings file and a .env file', async t => {
  const cwd = await tempFolder(t)
  const result = await run(t, ['init', '--yes'], { cwd })
  t.deepEqual([result.code, result.output, result.errors], [0, '', ''])
  t.deepEqual((await readdir(cwd)).toSorted(), ['.env', settingsFile])
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
  const cwd = await tempFolder(t, { '.env': '\uFEFFSERVER_SESSION_SECRET=x\r\nPLATFORM_CLIENT_SECRET=y\r\n' })
  const { errors } = await run(t, ['init', '--yes'], { cwd })
  t.is(errors, '.env exists already and was not changed.\n')
})

test('a server starts with the files of init once the client id and the client secret are filled in', async t => {
  const cwd = await tempFolder(t)
  await run(t, ['init', '--yes', '--mode', 'dual', '--port', '9000'], { cwd })
  const env = { PLATFORM_CLIENT_ID: 'me', PLATFORM_CLIENT_SECRET: 'abc' }
  const { config, warnings } = await loadConfig({ cwd, env })
  t.deepEqual(warnings, [])
  t.is(config.mode, 'dual')
  t.is(config.port, 9000)
  t.is(config.platform.callbackUrl, 'http://localhost:9000/api/auth/callback')
  t.is(config.refresh.marginSeconds, 120)
  t.is(config.refresh.spreadSeconds, 1500)
})

test('init also sets a refresh margin and spread in single mode', async t => {
  const cwd = await tempFolder(t)
  await run(t, ['init', '--yes', '--mode', 'single'], { cwd })
  const { config } = await loadConfig({ cwd, env: { PLATFORM_CLIENT_ID: 'me', PLATFORM_CLIENT_SECRET: 'abc' } })
  t.like(config.refresh, { marginSeconds: 120, spreadSeconds: 1500 })
})

test('the server does not start until the placeholder of init is replaced', async t => {
  const cwd = await tempFolder(t)
  await run(t, ['init', '--yes'], { cwd })
  const { code, errors } = await run(t, [], { cwd })
  t.is(code, 2)
  t.regex(errors, /platform\.clientId \(file platform-auth-server\.config\.yaml\)/)
  t.regex(errors, /platform\.clientSecret \(variable PLATFORM_CLIENT_SECRET in \.env\): is empty/)
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
  const cwd = await tempFolder(t)
  const { code, errors } = await run(t, ['init', '--yes', '--port', 'x', '--client-secret-file', 'no.txt'], { cwd })
  t.is(code, 2)
  t.regex(errors, /port \(flag --port\): found the text "x"/)
  t.regex(errors, /platform\.clientSecret \(flag --client-secret-file\): the file cannot be read/)
  t.deepEqual(await readdir(cwd), [])
})

test('init reports a secret that cannot be written into a .env file before it writes any file', async t => {
  const cwd = await tempFolder(t, { 'client.txt': 'a"b\'c`d#e' })
  const { code, errors } = await run(t, ['init', '--yes', '--client-secret-file', 'client.txt'], { cwd })
  t.is(code, 2)
  t.regex(errors, /PLATFORM_CLIENT_SECRET_FILE/)
  t.false(errors.includes('a"b'))
  t.deepEqual(await readdir(cwd), ['client.txt'])
})

test('init does not change existing files', async t => {
  const files = { [settingsFile]: 'mode: dual\n', '.env': 'SERVER_SESSION_SECRET=mine\n' }
  const cwd = await tempFolder(t, files)
  const { code, output, errors } = await run(t, ['init', '--yes'], { cwd })
  t.is(code, 0)
  t.is(output, '')
  t.is(
    errors,
    `${settingsFile} exists already and was not changed.\n.env exists already and was not changed. It does not set PLATFORM_CLIENT_SECRET.\n`
  )
  for (const [name, text] of Object.entries(files)) t.is(await readFile(join(cwd, name), 'utf8'), text)
})

test('if .env is a folder, init writes the settings file and lists the secrets that must be set elsewhere', async t => {
  const cwd = await tempFolder(t, { '.env/bin/python': '' })
  const { code, errors } = await run(t, ['init', '--yes'], { cwd })
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
  const cwd = await tempFolder(t, { '.platform-auth-serverrc.json': '{}' })
  const { errors } = await run(t, ['init', '--yes'], { cwd })
  t.regex(errors, /^\.platform-auth-serverrc\.json exists already/)
  t.deepEqual((await readdir(cwd)).toSorted(), ['.env', '.platform-auth-serverrc.json'])
})

test('without a terminal init asks nothing and prints the remaining steps', async t => {
  const cwd = await tempFolder(t)
  const { code, output } = await run(t, ['init'], { cwd })
  t.is(code, 0)
  t.deepEqual(output.trimEnd().split('\n'), [
    `Wrote ${settingsFile} and .env.`,
    `1. Put the client id into ${settingsFile}.`,
    '2. Put the client secret into .env.',
    '3. Register http://localhost:8080/api/auth/callback as a callback URL at the provider.',
    '4. Test the settings: npx platform-auth-server check',
    '5. Start: npx platform-auth-server'
  ])
})

test('the settings file of init begins with the line that tells editors its schema', async t => {
  const cwd = await tempFolder(t)
  await run(t, ['init', '--yes'], { cwd })
  const [line = ''] = (await readFile(join(cwd, settingsFile), 'utf8')).split('\n')
  t.true(readText('docs/configuration.md').includes(`\n${line}\n`), line)
})

for (const [before, after] of [
  ['node_modules\n', 'node_modules\n.env\n'],
  ['node_modules', 'node_modules\n.env\n'],
  ['', '.env\n'],
  ['/.env\n', '/.env\n'],
  ['.env*\n', '.env*\n']
] as const) {
  test(`init adds .env to .gitignore unless an entry covers it: ${JSON.stringify(before)}`, async t => {
    const cwd = await tempFolder(t, { '.gitignore': before })
    const { output } = await run(t, ['init'], { cwd })
    t.is(await readFile(join(cwd, '.gitignore'), 'utf8'), after)
    t.is(output.includes('Added .env to .gitignore.'), before !== after)
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
    'c1ient\n'
  ]
  const { code, output } = await person(t, cwd, answers)
  t.is(code, 0)
  t.regex(output, /found the text "both"; allowed: single or dual/)
  t.regex(output, /its path does not end in \/api\/auth\/callback/)
  t.regex(output, /Callback URL \[http:\/\/localhost:8080\/api\/auth\/callback\]: /)
  t.regex(output, /1\. Register https:\/\/a\.example\/api\/auth\/callback/)
  const { config } = await loadConfig({ cwd, env: {} })
  t.is(config.mode, 'dual')
  t.is(config.port, 8080)
  t.is(config.platform.clientId, 'me')
  t.is(config.platform.clientSecret, 'c1ient')
  t.regex(output, /"example\.com" is neither an address nor a domain with @ in front/)
  t.deepEqual(
    config.access.allow?.map(({ text }) => text),
    ['ada@example.com', '@team.example']
  )
})

test('init does not show the client secret while it is typed', async t => {
  const cwd = await tempFolder(t, { [settingsFile]: '' })
  const { output } = await person(t, cwd, ['hunter2hunter2\n'])
  t.regex(output, /Client secret, not shown/)
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
