import { stripVTControlCharacters } from 'node:util'
import test from 'ava'
import { settingKeys } from '#src/config/settings.js'
import { clientSecret, enough, sessionSecret } from '../config/given.js'
import { carries } from '../helpers/messages.js'
import { run } from './shell.js'

const secrets = { ...enough, REDIS_URL: 'redis://user:hunter2@cache.example:6379/1', PORT: '9000' }

test('config prints each setting on one line with its value and its source', async t => {
  const { code, output, errors } = await run(t, ['config', '--mode', 'dual'], {
    env: secrets,
    files: { '.platform-auth-serverrc.json': '{"logout":{"revoke":false}}', '.env': 'LOG_LEVEL=debug' }
  })
  t.is(code, 0)
  t.is(errors, '')
  const [file, table = ''] = output.trimEnd().split('\n\n')
  t.regex(file ?? '', /^Settings file: \S+\.platform-auth-serverrc\.json$/)
  const lines = table.split('\n').map(line => line.split(/ {2,}/))
  const keys = lines.map(([key]) => key)
  t.deepEqual(keys, [...settingKeys])
  const shown = Object.fromEntries(lines.map(([key, ...rest]) => [key, rest]))
  t.deepEqual(shown.mode, ['dual', 'flag --mode'])
  t.deepEqual(shown.port, ['9000', 'variable PORT'])
  t.deepEqual(shown['log.level'], ['debug', 'variable LOG_LEVEL in .env'])
  t.deepEqual(shown['logout.revoke'], ['false', 'file .platform-auth-serverrc.json'])
  t.deepEqual(shown.host, ['(all interfaces)', 'default'])
  t.deepEqual(shown['platform.publicTokenScopes'], ['viewables:read', 'default'])
  t.deepEqual(shown['session.previousSecrets'], ['(none)', 'default'])
})

for (const args of [['config'], ['config', '--json']]) {
  test(`${args.join(' ')} prints no secret`, async t => {
    const { output } = await run(t, args, { env: { ...secrets, SERVER_SESSION_PREVIOUS_SECRETS: sessionSecret } })
    for (const secret of [sessionSecret, clientSecret, 'hunter2']) t.false(output.includes(secret))
    t.true(output.includes('redis://***@cache.example:6379/1'))
    t.true(output.includes('********'))
  })
}

test('config --json prints the settings, problems and warnings as JSON', async t => {
  const { code, output, errors } = await run(t, ['config', '--json'], {
    env: { ...secrets, PORT: 'many', PLATFORM_AUTH_MOD: 'x' },
    files: { '.platform-auth-serverrc.json': '{}' }
  })
  t.is(code, 2)
  t.is(errors, '')
  const { settings, file, problems, warnings } = JSON.parse(output)
  t.deepEqual(Object.keys(settings), [...settingKeys])
  t.deepEqual(settings.port, { value: null, source: 'variable PORT' })
  t.deepEqual(settings['session.secret'], { value: '********', source: 'variable SERVER_SESSION_SECRET' })
  t.deepEqual(settings['platform.scopes'].value, ['data:read', 'account:read', 'account:write'])
  t.regex(file, /\.platform-auth-serverrc\.json$/)
  t.is(problems[0].key, 'port')
  t.is(warnings[0].key, 'PLATFORM_AUTH_…')
})

test('config prints the settings even if the server could not start with them', async t => {
  const { code, output, errors } = await run(t, ['config'], { env: { PORT: '9000', PLATFORM_CALLBACK_URI: 'x' } })
  t.is(code, 2)
  t.regex(output, /^port +9000 +variable PORT$/m)
  t.regex(output, /^platform\.callbackUrl +\(missing\) +not given$/m)
  carries(t, errors, 'platform.callbackUrl required PLATFORM_CALLBACK_… PLATFORM_CALLBACK_URL?')
})

test('config prints the endpoint addresses in use', async t => {
  const { output } = await run(t, ['config'], { env: { ...enough, PLATFORM_TOKEN_ENDPOINT: 'https://id.example/t' } })
  t.regex(output, /^Settings file: none found\n\n/)
  t.regex(output, /^platform\.authorizationEndpoint +https:\/\/developer\.api\.autodesk\.com\/\S+authorize +default$/m)
  t.regex(output, /^platform\.tokenEndpoint +https:\/\/id\.example\/t +variable PLATFORM_TOKEN_ENDPOINT$/m)
  const discovered = await run(t, ['config'], { env: { ...enough, PLATFORM_ISSUER: 'https://id.example' } })
  t.regex(discovered.output, /^platform\.tokenEndpoint +\(discovered at https:\/\/id\.example\) +default$/m)
})

test('on a narrow terminal config breaks no words', async t => {
  const { output } = await run(t, ['config', '--logout-idp'], { env: secrets, isTTY: true, columns: 80 })
  const text = stripVTControlCharacters(output)
  for (const line of text.split('\n')) t.true(line.length <= 80, line)
  t.regex(text, /^platform\.authorizationEndpoint\n {4}https:\/\/developer\S+authorize +default$/m)
})

test('config uses colours on a terminal, but not with NO_COLOR or in a pipe', async t => {
  const colour = '\u001b['
  t.true((await run(t, ['config'], { env: secrets, isTTY: true, columns: 80 })).output.includes(colour))
  const without = await run(t, ['config'], { env: { ...secrets, NO_COLOR: '1' }, isTTY: true, columns: 80 })
  t.false(without.output.includes(colour))
  t.false((await run(t, ['config'], { env: secrets })).output.includes(colour))
})
