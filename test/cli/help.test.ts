import { readFileSync } from 'node:fs'
import test from 'ava'
import { commands } from '#src/cli/commands/index.js'
import { defaultText, flagName, required, type SettingKey, settingKeys, settingOf } from '#src/config/settings.js'
import { newKey, pemOf } from '../helpers/client-keys.js'
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
    const [, words = ''] = /^(?:npx|node node_modules\/\.bin)[ /]platform-auth-server ?(.*)/.exec(example) ?? []
    const args = words.split(' ').filter(word => word !== '')
    const { code, errors } = await run(t, [...args, '--help'])
    t.deepEqual([code, errors], [0, ''], example)
  }
})

test('--help and the help of start name the entrypoint of a container and the reason', async t => {
  for (const args of [['--help'], ['--help', 'all'], ['start', '--help']]) {
    const text = (await run(t, args)).output.replace(/\s+/g, ' ')
    t.regex(
      text,
      /entrypoint of a container, start Node itself: node node_modules\/\.bin\/platform-auth-server\. npx .* SIGTERM/
    )
  }
})

const ownHelp: readonly (readonly [command: string, options: readonly string[]])[] = [
  ['start', ['--config <file>', '--watch', '--demo', '--demo-token-lifetime <duration>']],
  ['check', ['--json', '--config <file>', '--demo']],
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

test('-p is the short form of --port, and the same value may be given twice', async t => {
  for (const args of [['-p', '9000'], ['-p9000'], ['--port', '9000', '-p', '9000']]) {
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

const misspelt: readonly (readonly [readonly string[], RegExp])[] = [
  [['--prot', '1'], /^There is no flag --prot\. Did you mean --port\?\n$/],
  [['start', '--mod', 'dual'], /--mode\?/],
  [['--session-secret', 'x'], /--session-secret-file\?/],
  [['--client-secret', 'x'], /--client-secret-file\?/],
  [['--client-secret=TopSecret'], /^There is no flag --client-secret\. Did you mean --client-secret-file\?\n$/],
  [['--qqqqqqqq=TopSecret=='], /^There is no flag --qqqqqqqq\. --help all lists all of them\.\n$/],
  [
    ['--no-pkce'],
    /^There is no flag --no-pkce\. Set platform\.pkce in a settings file, or the variable PLATFORM_PKCE\.\n$/
  ],
  [
    ['--session-max-lifetime', '30d'],
    /Set session\.maxLifetime in a settings file, or the variable PLATFORM_AUTH_SESSION_/
  ],
  [['--redis-key-file=TopSecret'], /^There is no flag --redis-key-file\. Set redis\.keyFile in a settings file, or /],
  [['--log-requests=TopSecret'], /^--log-requests takes no value\.\n$/],
  [['config', '--json=TopSecret'], /^--json takes no value\.\n$/],
  [['--yes'], /^--yes is an option of init only\.\n$/],
  [['secret', '--json'], /^--json is an option of (\w+ or )*\w+ only\.\n$/],
  [['config', '--jsn'], /--json\?/],
  [['--hepl'], /--help\?/],
  [['--qqqqqqqq'], /^There is no flag --qqqqqqqq\. --help all lists all of them\.\n$/],
  [['strat'], /^There is no command strat\. Did you mean start\?\n$/],
  [['CLIENT_SECRET=TopSecret'], /^There is no command CLIENT_SECRET\. --help lists all of them\.\n$/],
  [['hlep'], /^There is no command hlep\. Did you mean help\?\n$/],
  [['help', 'chek'], /^There is no command chek\. Did you mean check\?\n$/],
  [['help', 'qqqqqqqq'], /^There is no command qqqqqqqq\. --help lists all of them\.\n$/],
  [['help', 'check', 'config'], /^too many arguments/],
  [['secret', 'extra'], /^secret accepts only flags. Remove extra\.\n$/],
  [['secret', 'PASSWORD=TopSecret'], /^secret accepts only flags. Remove PASSWORD\.\n$/],
  [['start', './wwwroot'], /^To serve a folder of pages, use the flag --wwwroot: --wwwroot \.\/wwwroot\n$/],
  [['./wwwroot'], /^To serve a folder of pages, use the flag --wwwroot: --wwwroot \.\/wwwroot\n$/],
  [['--help', 'chek'], /^There is no command chek\. Did you mean check\?\n$/],
  [['-p'], /^--port needs a value: a port number from 0 to 65535\.\n$/],
  [['--port'], /^--port needs a value: a port number from 0 to 65535\.\n$/],
  [['--mode'], /^--mode needs a value: single or dual\.\n$/],
  [['--config'], /^--config needs a value: --config <file>\n$/],
  [['--client-secret-file'], /^--client-secret-file needs a value: --client-secret-file <file>\n$/],
  [
    ['--port', '80', '--mode', 'dual', '-p', '81'],
    /^--port is given twice with different values\. Remove one of them\.\n$/
  ],
  [['config', '--mode=dual', '--mode', 'single'], /^--mode is given twice with different values\./],
  [
    ['--log-requests', '--no-log-requests'],
    /^--log-requests and --no-log-requests contradict each other\. Remove one of them\.\n$/
  ],
  [['sessions', '--user', 'TopSecret', '--user', 'b'], /^--user is given twice with different values\./],
  [['-v'], /^There is no flag -v\. Did you mean -V, which prints the version\?\n$/],
  [['--trust-proxy'], /^The flag --trust-proxy was replaced by LOG_TRUST_FORWARDED_FOR\.\n$/],
  [['--logout', 'idp'], /^The flag --logout was replaced by logout\.revoke and logout\.idp\.\n$/],
  [['--demo-token-lifetime', '5'], /--demo-token-lifetime needs --demo/],
  [['--demo', '--demo-token-lifetime', '0'], /--demo-token-lifetime must be a duration such as .*, from 1s to 24h/]
]

for (const [args, says] of misspelt) {
  test(`a wrong command line is refused with one sentence: ${args.join(' ')}`, async t => {
    const { code, output, errors } = await run(t, args)
    t.is(code, 2)
    t.regex(errors, says)
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
