import { readFileSync } from 'node:fs'
import test from 'ava'
import { commands } from '#src/cli/commands/index.js'
import { defaultText, flagName, required, type SettingKey, settingKeys, settingOf } from '#src/config/settings.js'
import { newKey, pemOf } from '../helpers/client-keys.js'
import { carries } from '../helpers/messages.js'
import { run } from './shell.js'

test('--help all lists every setting in its group with its variable and default, that a file contains a secret, and what --no- prevents', async t => {
  const { code, output, errors } = await run(t, ['--help', 'all'])
  const text = output.replace(/\s+/g, ' ')
  t.is(code, 0)
  t.is(errors, '')
  for (const key of settingKeys) {
    const { env, flag, default: value } = settingOf(key)
    if (flag) t.true(text.includes(`${flag} `), key)
    t.true(text.includes(env), key)
    t.true(text.includes(value === required ? `(${env}, required)` : `default: ${defaultText(key)})`), key)
  }
  const headings = ['Server:', 'Session:', 'Identity provider:', 'Log:', 'Metrics:', 'Trying it out:', 'Commands:']
  for (const heading of headings) t.regex(output, new RegExp(`^${heading}$`, 'm'))
  t.true(text.includes('Encrypt the session cookie with this secret. Read the value from this file.'))
})

/** Returns the names in the first column of a section of a help. */
function namesIn(help: string, title: string): string[] {
  const [, text = ''] = help.split(`\n${title}\n`)
  const [rows = ''] = text.split('\n\n')
  return [...rows.matchAll(/^ {2}(\S.*?)(?: {2}|$)/gm)].map(([, name = '']) => name)
}

test('--help shows ten settings, the commands and five examples, in this order, and then where the rest is', async t => {
  const { output } = await run(t, ['--help'])
  const titles = [...output.matchAll(/^(\S.*):(?:$| platform)/gm)].map(([, title]) => title)
  t.deepEqual(titles, ['Usage', 'Options', 'Most used settings', 'Commands', 'Examples', 'More'])
  t.deepEqual(namesIn(output, 'Commands:'), [
    ...commands.map(({ name, action }) => (action ? `${name} [${action.name}]` : name)),
    'help [command]'
  ])
  t.is(namesIn(output, 'Examples:').length, 5)
  const most = namesIn(output, 'Most used settings:')
  t.is(most.length, 10)
  t.is(most[1], '-p, --port <port>')
  t.true(namesIn(output, 'More:').includes('platform-auth-server --help all'))
})

test('each example of --help is a command line that exists', async t => {
  for (const example of namesIn((await run(t, ['--help'])).output, 'Examples:')) {
    const [, words = ''] = /^npx platform-auth-server ?(.*)/.exec(example) ?? []
    const args = words.split(' ').filter(word => word !== '')
    const { code, errors } = await run(t, [...args, '--help'])
    t.deepEqual([code, errors], [0, ''], example)
  }
})

test('--help and the help of start name the entrypoint of a container and the reason', async t => {
  for (const args of [['--help'], ['--help', 'all'], ['start', '--help']]) {
    const text = (await run(t, args)).output.replace(/\s+/g, ' ')
    carries(t, text, 'entrypoint container node_modules/platform-auth-server/bin/platform-auth-server.js. npx SIGTERM')
  }
})

const ownHelp: readonly (readonly [command: string, options: readonly string[]])[] = [
  ['start', ['--config <file>', '--watch', '--demo', '--demo-token-lifetime <duration>']],
  ['check', ['--json', '--config <file>', '--demo', '--demo-token-lifetime <duration>']],
  ['config', ['--json', '--config <file>']],
  ['init', ['--yes']],
  ['sessions', ['--user <name>', '--sub <sub>', '--name <name>', '--email <address>', '--json', '--config <file>']],
  ['secret', []],
  ['help', []]
]

for (const [command, options] of ownHelp) {
  test(`the help of ${command} shows only the options of this command`, async t => {
    const { code, output } = await run(t, [command, '--help'])
    t.is(code, 0)
    t.deepEqual(namesIn(output, 'Options:'), [...options, '-h, --help'])
    const entry = commands.find(({ name }) => name === command)
    if (entry) t.true(output.replace(/\s+/g, ' ').includes(entry.summary))
    t.is(output.includes('--help\nall') || output.includes('--help all'), entry !== undefined && !entry.ignoresSettings)
  })
}

test('the command help and the word after --help print the same text as --help', async t => {
  const output = async (...args: string[]) => (await run(t, args)).output
  t.is(await output('help'), await output('--help'))
  t.is(await output('-h'), await output('--help'))
  t.is(await output('help', 'all'), await output('--help', 'all'))
  t.is(await output('--help', '--mode', 'dual'), await output('--help'))
  for (const name of [...commands.map(command => command.name), 'help']) {
    t.is(await output('help', name), await output(name, '--help'))
    t.is(await output('--help', name), await output(name, '--help'))
  }
})

test('every help fits the width of the terminal', async t => {
  for (const args of [['--help'], ['--help', 'all'], ...commands.map(({ name }) => [name, '--help'])]) {
    const { output } = await run(t, args, { isTTY: true, columns: 80 })
    for (const line of output.split('\n')) t.true(line.length <= 80, line)
  }
})

test('-p is the short form of --port, and the last of several values counts', async t => {
  for (const args of [['-p', '9000'], ['-p9000'], ['--port', '80', '-p', '9000']]) {
    const { settings } = JSON.parse((await run(t, ['config', '--json', ...args])).output)
    t.deepEqual(settings.port, { value: 9000, source: 'flag --port' })
  }
})

test('--version prints the version of the package', async t => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  t.deepEqual(await run(t, ['--version']).then(({ code, output }) => [code, output]), [0, `${version}\n`])
})

test('before the command is known, commander is the only package that is loaded', t => {
  const seen = new Set<string>()
  const packages = new Set<string>()
  function walk(file: URL) {
    if (seen.has(file.href)) return
    seen.add(file.href)
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(
      /^(?:(?:import|export)\s(?:[^'"]*?\sfrom\s)?| *import\()['"]([^'"]+)['"]/gm
    )) {
      if (name.startsWith('.')) walk(new URL(name, file))
      else if (!name.startsWith('node:')) packages.add(name)
    }
  }
  walk(new URL('../../bin/platform-auth-server.js', import.meta.url))
  t.deepEqual([...packages], ['commander'])
  t.true(seen.size > 2)
})

const misspelt: readonly (readonly [args: readonly string[], message: string])[] = [
  [['--prot', '1'], 'no flag --prot. --port?'],
  [['start', '--mod', 'dual'], '--mode?'],
  [['--session-secret', 'x'], 'no flag --session-secret. --help all'],
  [['--client-secret=TopSecret'], 'no flag --client-secret. --help all'],
  [['--client-secret-fil=TopSecret'], 'no flag --client-secret-fil. --help all'],
  [['--TopSecret1'], 'no flag of this name. --help all'],
  [['--qqqqqqqq=TopSecret=='], 'no flag --qqqqqqqq. --help all'],
  [['--no-pkce'], 'no flag --no-pkce. platform.pkce settings file PLATFORM_PKCE.'],
  [['--session-max-lifetime', '30d'], 'session.maxLifetime settings file PLATFORM_AUTH_SESSION_MAX_LIFETIME'],
  [['--redis-key-file=TopSecret'], 'no flag --redis-key-file. redis.keyFile settings file'],
  [['--log-requests=TopSecret'], '--log-requests takes no value.'],
  [['config', '--json=TopSecret'], '--json takes no value.'],
  [['check', '--json=TopSecret'], '--json takes no value.'],
  [['--yes'], '--yes init only'],
  [['config', '--demo'], '--demo start check health only'],
  [['--demo', 'sessions', '--user', 'ada'], '--demo start check health only'],
  [['init', '--demo', '--yes'], '--demo start check health only'],
  [['secret', '--demo'], '--demo start check health only'],
  [['init', '--config=TopSecret'], '--config start check config health sessions only'],
  [['secret', '--json'], '--json check config sessions only'],
  [['config', '--jsn'], '--json?'],
  [['--hepl'], '--help?'],
  [['--qqqqqqqq'], 'no flag --qqqqqqqq. --help all'],
  [['strat'], 'no command strat. start, check, help.'],
  [['./wwwroot'], 'no command of this name. start, check,'],
  [['CLIENT_SECRET=TopSecret'], 'no command of this name. start, check,'],
  [['help', 'chek'], 'no command chek. check,'],
  [['--help', 'chek'], 'no command chek. check,'],
  [['help', 'check', 'config'], 'too many arguments'],
  [['secret', 'extra'], 'secret only flags other words'],
  [['secret', 'PASSWORD=TopSecret'], 'secret only flags other words'],
  [['-p'], '--port needs a value: 0 to 65535.'],
  [['--port'], '--port needs a value: 0 to 65535.'],
  [['--mode'], '--mode needs a value: single or dual.'],
  [['--config'], '--config needs a value: --config <file>'],
  [['--client-secret-file'], '--client-secret-file needs a value: --client-secret-file <file>'],
  [['-v'], 'no flag -v. -V, version?'],
  [['--demo-token-lifetime', '5'], '--demo-token-lifetime needs --demo'],
  [['--demo', '--demo-token-lifetime', '0'], '--demo-token-lifetime duration 1s 24h']
]

for (const [args, message] of misspelt) {
  test(`a wrong command line is refused with one sentence: ${args.join(' ')}`, async t => {
    const { code, output, errors } = await run(t, args)
    t.is(code, 2)
    carries(t, errors, message)
    t.is(errors.trim().split('\n').length, 1)
    t.notRegex(errors, /TopSecret/)
    t.is(output, '')
  })
}

test('every flag in the settings table sets its setting', async t => {
  // Texts for settings whose value cannot be derived from their row.
  const texts: Record<string, string> = {
    port: '9000',
    host: 'localhost',
    fallback: 'index.html',
    hashedAssets: 'assets',
    'platform.clientId': 'me',
    'platform.clientKey': 'key.pem',
    'platform.callbackUrl': 'https://a.example/api/auth/callback',
    'platform.issuer': 'https://id.example',
    'access.files': '/**',
    'apiProxy.rules': 'GET /api/hubs/** https://api.example/hubs/**',
    'redis.url': 'redis://localhost',
    'forwardAuth.address': '127.0.0.1:9002',
    'metrics.address': ':9001'
  }
  const textOf = (key: SettingKey) => {
    const { flag = '', type, default: value } = settingOf(key)
    if (!flag.includes('<')) return []
    if (texts[key] !== undefined) return [texts[key]]
    if (flag.endsWith('<file>')) return ['file.txt']
    if (flag.endsWith('<folder>')) return ['wwwroot']
    if (Array.isArray(type.json.enum)) return [String(type.json.enum.at(-1))]
    return [Array.isArray(value) ? value.join(' ') : String(value)]
  }
  const withFlag = settingKeys.filter(key => settingOf(key).flag)
  const args = withFlag.flatMap(key => [flagName(settingOf(key).flag ?? ''), ...textOf(key)])
  const files = { 'file.txt': 'wG4vT9qLx2ZbN7rKp5YcJ8sHd3MfA6eU\n', 'key.pem': pemOf(newKey('ES256')) }
  const { code, output } = await run(t, ['config', '--json', ...args], { files })
  t.is(code, 0)
  const { settings } = JSON.parse(output)
  for (const key of withFlag) t.is(settings[key].source, `flag ${flagName(settingOf(key).flag ?? '')}`)
  t.is(settings.port.value, 9000)
  t.is(settings['logout.idp'].value, true)
  t.is(settings['log.requests'].value, true)
})

test('each use of a repeatable flag adds to its list, and the command after it is still recognized', async t => {
  const rules = ['GET /api/a https://api.example/a', 'GET /api/b https://api.example/b']
  const args = rules.flatMap(rule => ['--api-proxy', rule])
  const { settings } = JSON.parse((await run(t, [...args, 'config', '--json'])).output)
  t.deepEqual(settings['apiProxy.rules'], { value: rules, source: 'flag --api-proxy' })
  const { output } = await run(t, [...args, 'config'])
  t.regex(
    output,
    /^apiProxy\.rules +GET \/api\/a https:\/\/api\.example\/a +flag --api-proxy\n +GET \/api\/b https:\/\/api\.example\/b$/m
  )
})

test('the opposite of a yes-or-no flag takes precedence over a variable, and a flag that is not given does not', async t => {
  const env = { LOG_REQUESTS: 'true', PLATFORM_AUTH_LOGOUT_IDP: 'false' }
  const settingsWith = async (...flags: string[]) =>
    JSON.parse((await run(t, ['config', '--json', ...flags], { env })).output).settings
  const without = await settingsWith()
  t.deepEqual(without['log.requests'], { value: true, source: 'variable LOG_REQUESTS' })
  t.deepEqual(without['logout.idp'], { value: false, source: 'variable PLATFORM_AUTH_LOGOUT_IDP' })
  const opposite = await settingsWith('--no-log-requests', '--logout-idp')
  t.deepEqual(opposite['log.requests'], { value: false, source: 'flag --log-requests' })
  t.deepEqual(opposite['logout.idp'], { value: true, source: 'flag --logout-idp' })
})
