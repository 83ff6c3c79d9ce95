import test from 'ava'
import { selfSignedCertificate } from '../helpers/certificate.js'
import { accepts } from './given.js'
import { testMessages } from './messages.js'

const { cert, key } = selfSignedCertificate()
const other = selfSignedCertificate()
const encrypted = '-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n'
const files = {
  'a.pem': cert,
  'a.key': key,
  'several.pem': `a comment\n${cert}${other.cert}`,
  'other.key': other.key,
  'encrypted.key': encrypted,
  'damaged.pem': cert.replace(/.{64}\n/, ''),
  'damaged.key': key.slice(0, 60) + key.slice(90),
  'empty.pem': '',
  'wwwroot/a.key': key
}

interface Given {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly url?: string
  /** The mode of the key file, in a folder that every user may enter. */
  readonly mode?: number
}

const inEnvironment = ({ ca, cert, key, url = 'rediss://localhost', mode }: Given) => ({
  files,
  env: { REDIS_URL: url, REDIS_CA_FILE: ca, REDIS_CERT_FILE: cert, REDIS_KEY_FILE: key },
  modes: { 'a.key': mode ?? 0o600, 'wwwroot/a.key': 0o600, ...(mode !== undefined && { '.': 0o755 }) }
})

test('the files of redisTls become absolute paths', async t => {
  const { files, env } = inEnvironment({ ca: 'several.pem', cert: 'a.pem', key: 'a.key' })
  const { config } = await accepts(t, { files, env })
  for (const path of [config.redis.caFile, config.redis.certFile, config.redis.keyFile])
    t.regex(path ?? '', /^\/.*\/(several\.pem|a\.pem|a\.key)$/)
})

testMessages('redis-tls', {
  'no such file': inEnvironment({ ca: 'nothing.pem' }),
  'a folder': inEnvironment({ ca: 'wwwroot' }),
  'an empty file': inEnvironment({ ca: 'empty.pem' }),
  'a damaged certificate': inEnvironment({ ca: 'damaged.pem' }),
  'a key in place of a certificate': inEnvironment({ cert: 'a.key', key: 'a.key' }),
  'a certificate in place of a key': inEnvironment({ cert: 'a.pem', key: 'a.pem' }),
  'an encrypted key': inEnvironment({ cert: 'a.pem', key: 'encrypted.key' }),
  'a damaged key': inEnvironment({ cert: 'a.pem', key: 'damaged.key' }),
  'the key of another certificate': inEnvironment({ cert: 'a.pem', key: 'other.key' }),
  'a certificate without a key': inEnvironment({ cert: 'a.pem' }),
  'a key without a certificate': inEnvironment({ key: 'a.key' }),
  'a URL without TLS': inEnvironment({ ca: 'a.pem', url: 'redis://localhost' }),
  'a key that is public': inEnvironment({ cert: 'a.pem', key: 'wwwroot/a.key' }),
  'a key in place of its path': inEnvironment({ cert: 'a.pem', key: key.replaceAll('\n', '\\n') }),
  'no URL': inEnvironment({ ca: 'a.pem', url: '' }),
  ...(process.platform !== 'win32' && {
    'a key that every user can read': inEnvironment({ cert: 'a.pem', key: 'a.key', mode: 0o644 })
  })
})
