import { generateKeyPairSync } from 'node:crypto'
import test from 'ava'
import { clientKey, signingKeyOf } from '#src/config/types/client-key.js'
import { jwkOf, newKey, pemOf, publicJwkOf } from '../helpers/client-keys.js'
import { accepts, load } from './given.js'
import { testMessages } from './messages.js'

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

const method = { PLATFORM_CLIENT_AUTH_METHOD: 'private_key_jwt' }

const rejected: readonly (readonly [what: string, text: string])[] = [
  ['a string', 'the client secret'],
  ['a public key', '-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----'],
  ['a certificate', '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----'],
  ['an encrypted key', String(rsa.export(encrypted))],
  ['half a key', pemOf(rsa).slice(0, 400)],
  ['a short RSA key', pemOf(small)],
  ['a key of another curve', pemOf(p384)],
  ['a key that cannot sign', pemOf(x25519)],
  ['half a JWK', jwkOf(rsa).slice(0, 100)],
  ['a public JWK', JSON.stringify(publicJwkOf(rsa))],
  ['a symmetric JWK', '{"kty":"oct","k":"Zx8cVb5nMq1wEr4tYu7iOp0aSd3fGh6j","alg":"HS256"}'],
  ['other JSON', '{"client_secret":"Zx8cVb5nMq1wEr4tYu7iOp0aSd3fGh6j"}'],
  ['a JWK without its parts', '{"kty":"EC","d":"AAAA"}'],
  ['a JWK set', JSON.stringify({ keys: [publicJwkOf(rsa)] })],
  ['a JWK for another algorithm', jwkOf(rsa, { alg: 'RS512' })]
]

const misspelt = { PLATFORM_CLIENT_AUTH_METHOD: 'private_key_jtw' }

testMessages('client-key', {
  ...Object.fromEntries(
    rejected.map(([what, text]) => [
      what,
      { env: { ...method, PLATFORM_CLIENT_KEY_FILE: 'client.key' }, files: { 'client.key': text } }
    ])
  ),
  'a file that does not exist': { env: { ...method, PLATFORM_CLIENT_KEY_FILE: '/run/secrets/nothing.pem' } },
  'a folder': { flags: { 'platform.clientKey': '/' }, env: method },
  'a JWK in place of the path of its file': { env: { ...method, PLATFORM_CLIENT_KEY_FILE: jwkOf(p256) } },
  'a PEM in place of the path of its file': { env: { ...method, PLATFORM_CLIENT_KEY_FILE: pemOf(p256) } },
  // Whether there is a key or a secret, only the method is reported.
  'an unknown method and a key': {
    env: { ...misspelt, PLATFORM_CLIENT_SECRET: '', PLATFORM_CLIENT_KEY: pemOf(p256) }
  },
  'an unknown method and a secret': { env: misspelt },
  'a method without its key': { env: method },
  'a key without its method': {
    env: { PLATFORM_CLIENT_KEY: pemOf(rsa), PLATFORM_CLIENT_AUTH_METHOD: 'client_secret_post' }
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
