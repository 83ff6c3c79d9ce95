import { readdirSync, readFileSync } from 'node:fs'
import test from 'ava'
import { commands } from '#src/cli/commands/index.js'
import { flagName } from '#src/config/flags.js'
import { defaultText, required, type SettingKey, settingKeys, settingOf } from '#src/config/settings.js'
import { run } from './shell.js'

test('--help lists every setting with its variable and its default', async t => {
  const { code, output, errors } = await run(t, ['--help'])
  const text = output.replace(/\s+/g, ' ')
  t.is(code, 0)
  t.is(errors, '')
  for (const key of settingKeys) {
    const { env, flag, default: value } = settingOf(key)
    if (flag) t.true(text.includes(`${flag} `), key)
    t.true(text.includes(env), key)
    t.true(text.includes(value === required ? `(${env}, required)` : `default: ${defaultText(key)})`), key)
  }
})

test('--help groups the flags', async t => {
  const { output } = await run(t, ['--help'])
  for (const heading of [
    'Server:',
    'Session:',
    'Identity provider:',
    'Log:',
    'Metrics:',
    'Trying it out:',
    'Commands:'
  ]) {
    t.regex(output, new RegExp(`^${heading}$`, 'm'))
  }
})

test('--help lists every command, and each command has its own help', async t => {
  const { output } = await run(t, ['--help'])
  for (const { name, summary } of commands) {
    t.regex(output, new RegExp(`^  ${name}\\b`, 'm'))
    const own = await run(t, [name, '--help'])
    t.is(own.code, 0)
    t.true(own.output.replace(/\s+/g, ' ').includes(summary))
  }
})

test('the command help prints the same text as --help', async t => {
  t.is((await run(t, ['help'])).output, (await run(t, ['--help'])).output)
  for (const name of [...commands.map(command => command.name), 'help']) {
    const { code, output } = await run(t, ['help', name])
    t.is(code, 0)
    t.is(output, (await run(t, [name, '--help'])).output)
  }
})

test('--help fits the width of the terminal', async t => {
  const { output } = await run(t, ['--help'], { isTTY: true, columns: 80 })
  for (const line of output.split('\n')) t.true(line.length <= 80, line)
})

test('--help ends with three examples, and the help of each command lists the flags that the command accepts', async t => {
  const { output } = await run(t, ['--help'])
  const [, examples = ''] = output.split('\nExamples:\n')
  t.is(examples.trim().split('\n').length, 3)
  for (const name of ['start', 'check', 'config', 'init']) {
    const own = (await run(t, [name, '--help'])).output
    for (const flag of ['--mode', '--port', '--config']) t.true(own.includes(`${flag} <`), `${name} ${flag}`)
  }
  t.false((await run(t, ['secret', '--help'])).output.includes('--port'))
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
  t.true(seen.size > 5)
})

test('every command has a file with its name', t => {
  const files = readdirSync(new URL('../../src/cli/commands/', import.meta.url))
  t.deepEqual(files.toSorted(), [...commands.map(({ name }) => `${name}.ts`), 'index.ts'].toSorted())
})

const misspelt: readonly (readonly [readonly string[], RegExp])[] = [
  [['--prot', '1'], /^There is no flag --prot\. Did you mean --port\?\n$/],
  [['start', '--mod', 'dual'], /--mode\?/],
  [['--session-secret', 'x'], /--session-secret-file\?/],
  [['--client-secret', 'x'], /--client-secret-file\?/],
  [['--client-secret=TopSecret'], /^There is no flag --client-secret\. Did you mean --client-secret-file\?\n$/],
  [['--qqqqqqqq=TopSecret=='], /^There is no flag --qqqqqqqq\. --help lists all of them\.\n$/],
  [['--log-pretty=TopSecret'], /^--log-pretty takes no value\.\n$/],
  [['config', '--json=TopSecret'], /^--json takes no value\.\n$/],
  [['--yes'], /^--yes is an option of init only\.\n$/],
  [['secret', '--json'], /^--json is an option of (\w+ or )*\w+ only\.\n$/],
  [['config', '--jsn'], /--json\?/],
  [['--hepl'], /--help\?/],
  [['--qqqqqqqq'], /^There is no flag --qqqqqqqq\. --help lists all of them\.\n$/],
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
  [['--port'], /^--port needs a value: a port number from 0 to 65535\.\n$/],
  [['--mode'], /^--mode needs a value: single or dual\.\n$/],
  [['--config'], /^--config needs a value: --config <file>\n$/],
  [['--client-secret-file'], /^--client-secret-file needs a value: --client-secret-file <file>\n$/],
  [['-v'], /^There is no flag -v\. Did you mean -V, which prints the version\?\n$/],
  [['--demo-port', '5'], /--demo-port needs --demo/],
  [['--demo-token-lifetime', '5'], /--demo-token-lifetime needs --demo/],
  [['--demo', '--demo-port', 'many'], /--demo-port must be a whole number from 0 to 65535/],
  [['--demo', '--demo-token-lifetime', '0'], /--demo-token-lifetime must be a whole number from 1/]
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
    'platform.callbackUrl': 'https://a.example/api/auth/callback',
    'platform.issuer': 'https://id.example',
    'platform.prompt': 'login',
    'proxy.routes': 'GET /api/hubs/** https://api.example/hubs/**',
    redisUrl: 'redis://localhost',
    'forwardAuth.port': '9002',
    'metrics.port': '9001'
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
  const files = { 'file.txt': 'wG4vT9qLx2ZbN7rKp5YcJ8sHd3MfA6eU\n' }
  const { code, output } = await run(t, ['config', '--json', ...args], { files })
  t.is(code, 0)
  const { settings } = JSON.parse(output)
  for (const key of withFlag) t.is(settings[key].origin, `flag ${flagName(settingOf(key).flag ?? '')}`)
  t.is(settings.port.value, 9000)
  t.is(settings['platform.pkce'].value, false)
  t.is(settings['log.requests'].value, true)
})

test('each use of a repeatable flag adds to its list, and the command after it is still recognized', async t => {
  const rules = ['GET /api/a https://api.example/a', 'GET /api/b https://api.example/b']
  const args = rules.flatMap(rule => ['--proxy', rule])
  const { settings } = JSON.parse((await run(t, [...args, 'config', '--json'])).output)
  t.deepEqual(settings['proxy.routes'], { value: rules, origin: 'flag --proxy' })
  const { output } = await run(t, [...args, 'config'])
  t.regex(
    output,
    /^proxy\.routes +GET \/api\/a https:\/\/api\.example\/a +flag --proxy\n +GET \/api\/b https:\/\/api\.example\/b$/m
  )
})

test('the opposite of a yes-or-no flag takes precedence over a variable', async t => {
  const env = { PLATFORM_AUTH_LOG_REQUESTS: 'true', PLATFORM_PKCE: 'false' }
  const { output } = await run(t, ['config', '--json', '--no-log-requests', '--pkce'], { env })
  const { settings } = JSON.parse(output)
  t.deepEqual(settings['log.requests'], { value: false, origin: 'flag --log-requests' })
  t.deepEqual(settings['platform.pkce'], { value: true, origin: 'flag --no-pkce' })
})
