import { readFileSync } from 'node:fs'
import test from 'ava'
import { commands } from '#src/cli/commands/index.js'
import { nameOf, settingsAmong } from '#src/cli/options.js'
import { defaultText, required, settingKeys, settingOf } from '#src/config/settings.js'
import { assertCases } from '../helpers/case-file.js'
import { testSections } from '../helpers/golden.js'
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

testSections('test/cli/help.txt', async (t, line) => {
  const { code, output } = await run(t, line.split(' '))
  t.is(code, 0)
  return output.trimEnd()
})

test('each example of --help is a command line that exists', async t => {
  for (const example of namesIn((await run(t, ['--help'])).output, 'Examples:')) {
    const [, words = ''] = /^npx platform-auth-server ?(.*)/.exec(example) ?? []
    const args = words.split(' ').filter(word => word !== '')
    const { code, errors } = await run(t, [...args, '--help'])
    t.deepEqual([code, errors], [0, ''], example)
  }
})

test('the command help and the word after --help print the same text as --help', async t => {
  const output = async (...args: string[]) => (await run(t, args)).output
  t.is(await output('help'), await output('--help'))
  t.is(await output('-h'), await output('--help'))
  t.is(await output('help', 'all'), await output('--help', 'all'))
  t.is(await output('--help', '--mode', 'dual'), await output('--help'))
  for (const { name } of commands) {
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
      /^(?:(?:import|export)\s(?:[^'"]*?\sfrom\s)?| *import\(|\s*module\.exports = __require\()['"]([^'"]+)['"]/gm
    )) {
      if (name.startsWith('.')) walk(new URL(name, file))
      else if (!name.startsWith('node:')) packages.add(name)
    }
  }
  walk(new URL('../../bin/platform-auth-server.js', import.meta.url))
  t.deepEqual([...packages], ['commander'])
  t.true(seen.size > 2)
})

test('a wrong command line is refused with one sentence', t =>
  assertCases(t, 'test/cli/usage.txt', async line => {
    const { code, output, errors } = await run(t, line.split(' '))
    t.deepEqual([code, output], [2, ''])
    t.notRegex(errors, /TopSecret/)
    return errors.trimEnd()
  }))

test('every flag in the settings table sets its setting', t => {
  for (const key of settingKeys) {
    const { flag } = settingOf(key)
    if (flag) t.deepEqual(settingsAmong({ [nameOf(flag)]: 'x' }), { [key]: 'x' })
  }
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
