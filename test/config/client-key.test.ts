import { generateKeyPairSync } from 'node:crypto'
import test from 'ava'
import { clientKey, signingKeyOf } from '#src/config/client-key.js'
import { ConfigError } from '#src/config/errors.js'
import { jwkOf, newKey, pemOf, publicJwkOf } from '../helpers/client-keys.js'
import { accepts, areProblems, load, problemsOf, refuses } from './given.js'

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

const rejected: readonly (readonly [what: string, text: string, reason: string])[] = [
  ['a string', 'the client secret', 'PEM JWK'],
  ['a public key', '-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----', 'public key not private'],
  ['a certificate', '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----', 'certificate'],
  ['an encrypted key', String(rsa.export(encrypted)), 'passphrase'],
  ['half a key', pemOf(rsa).slice(0, 400), 'damaged'],
  ['a short RSA key', pemOf(small), '1024 bits'],
  ['a key of another curve', pemOf(p384), 'curve secp384r1'],
  ['a key that cannot sign', pemOf(x25519), 'type x25519'],
  ['half a JWK', jwkOf(rsa).slice(0, 100), 'not valid JSON'],
  ['a public JWK', JSON.stringify(publicJwkOf(rsa)), 'public key'],
  ['a symmetric JWK', '{"kty":"oct","k":"Zx8cVb5nMq1wEr4tYu7iOp0aSd3fGh6j","alg":"HS256"}', 'symmetric kty oct'],
  ['other JSON', '{"client_secret":"Zx8cVb5nMq1wEr4tYu7iOp0aSd3fGh6j"}', 'not a JWK no kty'],
  ['a JWK without its parts', '{"kty":"EC","d":"AAAA"}', 'damaged'],
  ['a JWK set', JSON.stringify({ keys: [publicJwkOf(rsa)] }), 'set of keys'],
  ['a JWK for another algorithm', jwkOf(rsa, { alg: 'RS512' }), 'alg']
]

const method = { PLATFORM_CLIENT_AUTH_METHOD: 'private_key_jwt' }

for (const [what, text, reason] of rejected) {
  test(`${what} is rejected as a client key, and the message names the file and not its content`, async t => {
    const env = { ...method, PLATFORM_CLIENT_KEY_FILE: 'client.key' }
    const problems = await problemsOf(t, { env, files: { 'client.key': text } })
    areProblems(t, problems, [`platform.clientKey /client.key ${reason}`])
    for (const line of text.split(/[\n"]/).filter(line => line.length > 20 && !line.startsWith('-----')))
      t.false(JSON.stringify(problems).includes(line))
  })
}

test('a key file that cannot be read is an error that names the file', async t => {
  const missing = { ...method, PLATFORM_CLIENT_KEY_FILE: '/run/secrets/nothing.pem' }
  await refuses(t, { env: missing }, 'platform.clientKey /run/secrets/nothing.pem no such file')
  await refuses(t, { flags: { 'platform.clientKey': '/' }, env: method }, 'platform.clientKey folder')
})

test('a key in place of the path of its file is not shown', async t => {
  for (const text of [jwkOf(p256), pemOf(p256)]) {
    const problems = await problemsOf(t, { env: { ...method, PLATFORM_CLIENT_KEY_FILE: text } })
    areProblems(t, problems, ['platform.clientKey PLATFORM_CLIENT_KEY_FILE a file'])
    t.false(JSON.stringify(problems).includes(text.slice(-60, -40)))
  }
})

test('an unknown method of client authentication is the only problem, whether there is a key or a secret', async t => {
  const misspelt = { PLATFORM_CLIENT_AUTH_METHOD: 'private_key_jtw' }
  const withKey = { ...misspelt, PLATFORM_CLIENT_SECRET: '', PLATFORM_CLIENT_KEY: pemOf(p256) }
  for (const env of [withKey, misspelt]) {
    const error = await t.throwsAsync(load(t, { env }), { instanceOf: ConfigError })
    areProblems(t, error?.problems, [
      'platform.clientAuthMethod PLATFORM_CLIENT_AUTH_METHOD "private_key_jtw" client_secret_basic client_secret_post private_key_jwt'
    ])
    t.deepEqual(error?.warnings, [])
  }
})

test('with private_key_jwt, no client secret is needed', async t => {
  const files = { 'client.jwk': jwkOf(rsa, { kid: 'of the key' }) }
  const env = { ...method, PLATFORM_CLIENT_SECRET: undefined, PLATFORM_CLIENT_KEY_FILE: 'client.jwk' }
  const { config } = await accepts(t, { env, files })
  t.like(signingKeyOf(config.platform), { algorithm: 'RS256', keyId: 'of the key' })
  const other = await accepts(t, { env: { ...env, PLATFORM_CLIENT_KEY_ID: 'of the setting' }, files })
  t.like(signingKeyOf(other.config.platform), { algorithm: 'RS256', keyId: 'of the setting' })
})

test('the method and the key must fit together', async t => {
  await refuses(t, { env: method }, 'platform.clientAuthMethod private_key_jwt no key PLATFORM_CLIENT_KEY_FILE')
  const env = { PLATFORM_CLIENT_KEY: pemOf(rsa), PLATFORM_CLIENT_AUTH_METHOD: 'client_secret_post' }
  await accepts(t, { env }, 'platform.clientKey no effect platform.clientAuthMethod client_secret_post')
})

test('a key alone selects private_key_jwt, and no client secret is needed', async t => {
  const env = { PLATFORM_CLIENT_SECRET: undefined, PLATFORM_CLIENT_KEY: pemOf(rsa) }
  const { config, sources } = await accepts(t, { env })
  t.deepEqual([config.platform.clientAuthMethod, sources['platform.clientAuthMethod']], ['private_key_jwt', 'default'])
})

test('a key in .env may have several lines', async t => {
  const dotEnv = `PLATFORM_CLIENT_AUTH_METHOD=private_key_jwt\nPLATFORM_CLIENT_KEY="${pemOf(ed25519)}"\n`
  const { config } = await load(t, { files: { '.env': dotEnv } })
  t.is(signingKeyOf(config.platform)?.algorithm, 'EdDSA')
})
