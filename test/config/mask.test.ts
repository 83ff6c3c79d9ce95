// Pastes a secret into the wrong places, and looks for it in everything that the commands print.
import { randomBytes } from 'node:crypto'
import test from 'ava'
import fc from 'fast-check'
import { checkValue } from '#src/config/check-value.js'
import { flagName, type SettingKey, settingKeys, settingOf } from '#src/config/settings.js'
import { readString } from '#src/config/types/value-type.js'
import { run, type ShellOptions } from '../cli/shell.js'
import { enough } from './given.js'

// A word that may stand in many places. It contains a digit, because a word of letters in the place of a name is shown.
const secret = `Q${randomBytes(6).toString('hex')}7`

/** Ways to write a value with a secret, of which the first is refused by most types. */
const forms: readonly string[] = [
  '%',
  '% =,;',
  '/%',
  'a=% b=%',
  'client_secret=%',
  'x="%',
  'https://u:%@h.example/api/auth/callback',
  'https://u:a/%@h.example',
  'https://u:a#%@h.example/x',
  'https:\\\\u:%@h.example',
  'https:u:%@h.example',
  'https://h.example/?x=%',
  'redis://:%@h.example',
  'redis://:a/%@h.example',
  'redis://h.example?password=%',
  'redis://h.example?sentinel=m&sentinelPassword=%',
  'GET /a https://u:%@h.example/a',
  'GET https://u:%@h.example /a',
  'GET /a https:u:a/%@h.example/a token=public',
  'GET /a http://h.example/a %',
  'GET /a https://h.example/a token=%',
  '@Microsoft.KeyVault(SecretUri=%)',
  '{"kty":"oct","k":"%"}',
  '-----BEGIN PRIVATE KEY-----\\n%\\n-----END PRIVATE KEY-----'
]

/** Files in which the secret is a part of the syntax. */
const texts: readonly (readonly [file: string, text: string])[] = [
  ...[
    '%',
    '%=',
    '% = x',
    '"%',
    'PORT %',
    'export %=x',
    'PLATFORM_AUTH_%=x',
    'PLATFORM_CLIENT_SECRET:%',
    'x=1\n%\n'
  ].map(text => ['.env', text] as const),
  ...[
    '%',
    '%: x',
    '%.a: x',
    'platform: %',
    'platform: {clientSecret: a, %}',
    'platform: {%: {a: b}}',
    '"%',
    '*%',
    '&%'
  ].map(text => ['.platform-auth-serverrc', text] as const),
  ...['!% x', '%: [', '? {%: 1}\n: 2', 'port: !!% 1', '%YAML %\n---\n', '<<: %', '- %', 'a: |%\n x', 'session: [%'].map(
    text => ['.platform-auth-serverrc', text] as const
  ),
  ...[
    '{"%":1}',
    '{"platform":"%"}',
    '{"a":%}',
    '"%"',
    '{"%',
    '{"platform":{"%":null}}',
    '{"$import":"%"}',
    '{"session":{"secret":["%"],"previousSecrets":["%"]}}',
    '{"platform":{"clientSecret":{"value":"%"}}}',
    '{"session":"%"}'
  ].map(text => ['platform-auth-server.config.json', text] as const),
  ...['throw new Error("%")', 'const % = x', 'null.%', 'throw "%"', 'module.exports = "%"'].map(
    text => ['platform-auth-server.config.cjs', text] as const
  ),
  ['package.json', '{"platform-auth-server":{"%":1}}'],
  ['package.json', '{"platform-auth-server":"%"'],
  ['package.json', '{"platform-auth-server":{"$import":"%"}}']
]

/** True for a value that may be shown: a word, a number, a duration or a path that its type accepts. */
function isShown(key: SettingKey, value: string): boolean {
  const { secret, type } = settingOf(key)
  return !secret && !type.mask && 'value' in checkValue(key, readString(type, value))
}

interface Pasted extends ShellOptions {
  readonly args?: readonly string[]
}

const places: Readonly<Record<string, (key: SettingKey, value: string) => Pasted>> = {
  flag: (key, value) => {
    const { flag } = settingOf(key)
    return { args: flag?.includes('<') ? [flagName(flag), value] : [] }
  },
  variable: (key, value) => ({ env: { [settingOf(key).env]: value } }),
  _FILE: (key, value) => ({ env: { [`${settingOf(key).env}_FILE`]: value } }),
  '.env': (key, value) => ({ files: { '.env': `${settingOf(key).env}=${value}\n` } }),
  file(key, value) {
    const [name = '', member] = key.split('.')
    const settings = { [name]: member === undefined ? value : { [member]: value } }
    return { files: { '.platform-auth-serverrc': JSON.stringify(settings) } }
  }
}

const place = fc.constantFrom(...Object.keys(places))
const form = fc.constantFrom(...forms)

test('no command prints a secret that was written into any setting', async t => {
  async function printsNoSecret(key: SettingKey, form: string, place: string) {
    const value = form.replaceAll('%', secret)
    fc.pre(!isShown(key, value))
    const { args = [], env, files } = places[place]?.(key, value) ?? {}
    const others = Object.entries(enough).filter(([name]) => name !== settingOf(key).env)
    const options: ShellOptions = { env: { ...Object.fromEntries(others), ...env }, ...(files && { files }) }
    const { code, output, errors } = await run(t, ['config', ...args], options)
    // With invalid settings, the server does not start.
    const started = code === 2 ? await run(t, args, options) : undefined
    t.false(`${output}${errors}${started?.output}${started?.errors}`.includes(secret), `${key} (${place}): ${form}`)
  }
  await fc.assert(fc.asyncProperty(fc.constantFrom(...settingKeys), form, place, printsNoSecret), { numRuns: 150 })
})

for (const [file, text] of texts) {
  test(`no command prints a secret in ${file}: ${text}`, async t => {
    const files = { [file]: text.replaceAll('%', secret) }
    const { output, errors } = await run(t, ['config'], { env: enough, files })
    t.false((output + errors).includes(secret))
  })
}
