import { generateKeyPairSync } from 'node:crypto'
import { join } from 'node:path'
import test from 'ava'
import { clientKey, signingKeyOf } from '#src/config/client-key.js'
import { ConfigError } from '#src/config/errors.js'
import { loadConfig } from '#src/config/load.js'
import { jwkOf, newKey, pemOf, publicJwkOf } from '../helpers/client-keys.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { enough, keysOf, linesOf, load, problemsOf } from './given.js'

const [rsa, p256, ed25519] = [newKey('RS256'), newKey('ES256'), newKey('EdDSA')]
const rsaPss = generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).privateKey
const [small, p384, x25519] = [
  generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey,
  generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
  generateKeyPairSync('x25519').privateKey
]
const encrypted = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' } as const

const accepted: readonly (readonly [what: string, text: string, algorithm: string])[] = [
  ['an RSA key as PEM', pemOf(rsa), 'RS256'],
  ['a PEM with \\n instead of line breaks', pemOf(rsa).replaceAll('\n', '\\n'), 'RS256'],
  ['an RSA key in PKCS #1', String(rsa.export({ type: 'pkcs1', format: 'pem' })), 'RS256'],
  ['an RSA key for RSASSA-PSS only', pemOf(rsaPss), 'PS256'],
  ['a P-256 key as PEM', pemOf(p256), 'ES256'],
  ['a P-256 key in SEC 1', String(p256.export({ type: 'sec1', format: 'pem' })), 'ES256'],
  ['an Ed25519 key as PEM', pemOf(ed25519), 'EdDSA'],
  ['a JWK', ` ${jwkOf(p256)}\n`, 'ES256'],
  ['a JWK with an alg', jwkOf(rsa, { alg: 'PS256' }), 'PS256']
]

for (const [what, text, algorithm] of accepted) {
  test(`${what} is a client key`, t => {
    const parsed = clientKey.parse(text)
    t.deepEqual('value' in parsed && parsed.value.algorithm, algorithm)
  })
}

const rejected: readonly (readonly [what: string, text: string, reason: RegExp])[] = [
  ['a string', 'the client secret', /neither a PEM file nor a JWK/],
  [
    'a public key',
    '-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----',
    /it is a public key and not a private/
  ],
  ['a certificate', '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----', /it is a certificate/],
  ['an encrypted key', String(rsa.export(encrypted)), /it has a passphrase/],
  ['half a key', pemOf(rsa).slice(0, 400), /it is damaged/],
  ['a short RSA key', pemOf(small), /only 1024 bits/],
  ['a key of another curve', pemOf(p384), /its curve is secp384r1/],
  ['a key that cannot sign', pemOf(x25519), /a key of the type x25519/],
  ['half a JWK', jwkOf(rsa).slice(0, 100), /not valid JSON/],
  ['a public JWK', JSON.stringify(publicJwkOf(rsa)), /it is a public key/],
  [
    'a symmetric JWK',
    '{"kty":"oct","k":"Zx8cVb5nMq1wEr4tYu7iOp0aSd3fGh6j","alg":"HS256"}',
    /it is a symmetric key \(kty oct\)/
  ],
  ['other JSON', '{"client_secret":"Zx8cVb5nMq1wEr4tYu7iOp0aSd3fGh6j"}', /it is not a JWK, because it has no kty/],
  ['a JWK without its parts', '{"kty":"EC","d":"AAAA"}', /it is damaged/],
  ['a JWK set', JSON.stringify({ keys: [publicJwkOf(rsa)] }), /a set of keys/],
  ['a JWK for another algorithm', jwkOf(rsa, { alg: 'RS512' }), /its alg is not/]
]

for (const [what, text, reason] of rejected) {
  test(`${what} is rejected as a client key, and the message names the file and not its content`, async t => {
    const cwd = await tempFolder(t, { 'client.key': text })
    const env = { ...enough, PLATFORM_CLIENT_AUTH_METHOD: 'private_key_jwt', PLATFORM_CLIENT_KEY_FILE: 'client.key' }
    const error = await t.throwsAsync(loadConfig({ env, cwd }), { instanceOf: ConfigError })
    t.deepEqual(keysOf(error?.problems), ['platform.clientKey'])
    t.true(error?.message.includes(`cannot be read from the file ${join(cwd, 'client.key')}, because `))
    t.regex(String(error?.message), reason)
    for (const line of text.split(/[\n"]/).filter(line => line.length > 20 && !line.startsWith('-----')))
      t.false(error?.message.includes(line))
  })
}

test('a key file that cannot be read is an error that names the file, and a key in place of a path is not shown', async t => {
  const method = { PLATFORM_CLIENT_AUTH_METHOD: 'private_key_jwt' }
  const [missing] = await problemsOf(t, { env: { ...method, PLATFORM_CLIENT_KEY_FILE: '/run/secrets/nothing.pem' } })
  t.regex(
    String(missing?.message),
    /^cannot be read from the file \/run\/secrets\/nothing\.pem, because there is no such file\./
  )
  const [folder] = await problemsOf(t, { flags: { 'platform.clientKey': '/' }, env: method })
  t.regex(String(folder?.message), /^cannot be read from the file \/, because it is a folder\./)
  for (const text of [jwkOf(p256), pemOf(p256)]) {
    const [shown] = await problemsOf(t, { env: { ...method, PLATFORM_CLIENT_KEY_FILE: text } })
    t.regex(String(shown?.message), /^cannot be read from a file, because /)
  }
})

test('an unknown method of client authentication is the only problem, whether there is a key or a secret', async t => {
  const method = { PLATFORM_CLIENT_AUTH_METHOD: 'private_key_jtw' }
  const message =
    'cannot be the string "private_key_jtw". Set it to client_secret_basic, client_secret_post or private_key_jwt.'
  const withKey = { ...enough, ...method, PLATFORM_CLIENT_SECRET: '', PLATFORM_CLIENT_KEY: pemOf(p256) }
  for (const env of [withKey, { ...enough, ...method }]) {
    const error = await t.throwsAsync(loadConfig({ cwd: await tempFolder(t), env }), { instanceOf: ConfigError })
    t.deepEqual(error?.problems, [
      { key: 'platform.clientAuthMethod', source: 'variable PLATFORM_CLIENT_AUTH_METHOD', message }
    ])
    t.deepEqual(error?.warnings, [])
  }
})

test('with private_key_jwt, no client secret is needed', async t => {
  const files = { 'client.jwk': jwkOf(rsa, { kid: 'of the key' }) }
  const env = {
    PLATFORM_CLIENT_SECRET: undefined,
    PLATFORM_CLIENT_AUTH_METHOD: 'private_key_jwt',
    PLATFORM_CLIENT_KEY_FILE: 'client.jwk'
  }
  const { config, warnings } = await load(t, { env, files })
  t.deepEqual(warnings, [])
  t.like(signingKeyOf(config.platform), { algorithm: 'RS256', keyId: 'of the key' })
  const chosen = { PLATFORM_CLIENT_KEY_ID: 'of the setting' }
  const other = await load(t, { env: { ...env, ...chosen }, files })
  t.like(signingKeyOf(other.config.platform), { algorithm: 'RS256', keyId: 'of the setting' })
})

test('the method and the key must fit together', async t => {
  const without = await problemsOf(t, { env: { PLATFORM_CLIENT_AUTH_METHOD: 'private_key_jwt' } })
  t.deepEqual(linesOf(without), [
    'platform.clientAuthMethod is private_key_jwt, but there is no key. Set PLATFORM_CLIENT_KEY_FILE to the path of a private key.'
  ])
  const env = { PLATFORM_CLIENT_KEY: pemOf(rsa), PLATFORM_CLIENT_AUTH_METHOD: 'client_secret_post' }
  t.deepEqual(linesOf((await load(t, { env })).warnings), [
    'platform.clientKey has no effect, because platform.clientAuthMethod is client_secret_post.'
  ])
})

test('a key alone selects private_key_jwt, and no client secret is needed', async t => {
  const env = { PLATFORM_CLIENT_SECRET: undefined, PLATFORM_CLIENT_KEY: pemOf(rsa) }
  const { config, warnings, sources } = await load(t, { env })
  t.deepEqual([config.platform.clientAuthMethod, sources['platform.clientAuthMethod']], ['private_key_jwt', 'default'])
  t.deepEqual(warnings, [])
})

test('a key in .env may have several lines', async t => {
  const dotEnv = `PLATFORM_CLIENT_AUTH_METHOD=private_key_jwt\nPLATFORM_CLIENT_KEY="${pemOf(ed25519)}"\n`
  const { config } = await load(t, { files: { '.env': dotEnv } })
  t.is(signingKeyOf(config.platform)?.algorithm, 'EdDSA')
})
