import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { resolveSettings } from '#src/config/load.js'
import { selfSignedCertificate } from '../helpers/certificate.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { enough, keysOf, linesOf } from './given.js'

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
}

async function resolveWith(t: ExecutionContext, given: Given) {
  const cwd = await tempFolder(t, files)
  for (const name of ['a.key', 'wwwroot/a.key']) await chmod(join(cwd, name), 0o600)
  const { ca, cert, key, url = 'rediss://localhost' } = given
  const env = { ...enough, REDIS_URL: url, REDIS_CA_FILE: ca, REDIS_CERT_FILE: cert, REDIS_KEY_FILE: key }
  const { values, problems, warnings } = await resolveSettings({ cwd, env })
  const relativeLinesOf = (list: typeof problems) => linesOf(list).map(line => line.replaceAll(cwd, '.'))
  return { cwd, values, problems: relativeLinesOf(problems), warnings: relativeLinesOf(warnings) }
}

test('the files of redisTls become absolute paths', async t => {
  const { cwd, values, problems, warnings } = await resolveWith(t, { ca: 'several.pem', cert: 'a.pem', key: 'a.key' })
  t.deepEqual([problems, warnings], [[], []])
  t.is(values['redis.caFile'], join(cwd, 'several.pem'))
  t.is(values['redis.certFile'], join(cwd, 'a.pem'))
  t.is(values['redis.keyFile'], join(cwd, 'a.key'))
})

const certAdvice = 'Set it to the path of a PEM file with a certificate.'
const caAdvice = 'Set it to the path of a PEM file with one or more certificates.'
const keyAdvice = 'Set it to the path of a PEM file with a private key without a passphrase.'
const noTls =
  'is set, but redis.url does not use TLS. Change the beginning of redis.url to rediss://, or remove this setting.'

const rejected: readonly (readonly [given: Given, ...problems: string[]])[] = [
  [
    { ca: 'nothing.pem' },
    `redis.caFile cannot be the string "nothing.pem", because there is no such file. ${caAdvice}`
  ],
  [{ ca: 'wwwroot' }, `redis.caFile cannot be the string "wwwroot", because it is a folder. ${caAdvice}`],
  [
    { ca: 'empty.pem' },
    `redis.caFile cannot be the string "empty.pem", because it contains no certificate in PEM format. ${caAdvice}`
  ],
  [
    { ca: 'damaged.pem' },
    `redis.caFile cannot be the string "damaged.pem", because it contains a damaged certificate. ${caAdvice}`
  ],
  [
    { cert: 'a.key', key: 'a.key' },
    `redis.certFile cannot be the string "a.key", because it contains no certificate in PEM format. ${certAdvice}`
  ],
  [
    { cert: 'a.pem', key: 'a.pem' },
    `redis.keyFile cannot be the string "a.pem", because it contains no private key in PEM format. ${keyAdvice}`
  ],
  [
    { cert: 'a.pem', key: 'encrypted.key' },
    `redis.keyFile cannot be the string "encrypted.key", because its key has a passphrase. ${keyAdvice}`
  ],
  [
    { cert: 'a.pem', key: 'damaged.key' },
    `redis.keyFile cannot be the string "damaged.key", because its key is damaged. ${keyAdvice}`
  ],
  [
    { cert: 'a.pem', key: 'other.key' },
    'redis.keyFile cannot be "./other.key", because this is not the key of the certificate in redis.certFile. Set it to the file with that key.'
  ],
  [{ cert: 'a.pem' }, 'redis.certFile is set without redis.keyFile. Set both or neither.'],
  [{ key: 'a.key' }, 'redis.keyFile is set without redis.certFile. Set both or neither.'],
  [{ ca: 'a.pem', url: 'redis://localhost' }, `redis.caFile ${noTls}`]
]

for (const [given, ...expected] of rejected) {
  test(`redisTls is refused with ${JSON.stringify(given)}`, async t => {
    t.deepEqual((await resolveWith(t, given)).problems, expected)
  })
}

test('a key in place of the path of its file is not shown', async t => {
  const oneLine = key.replaceAll('\n', '\\n')
  const { problems } = await resolveWith(t, { cert: 'a.pem', key: oneLine })
  t.deepEqual(problems, [`redis.keyFile cannot be the key itself. ${keyAdvice}`])
})

test('without redis.url, the settings of TLS have no effect, with a warning', async t => {
  const { problems, warnings } = await resolveWith(t, { ca: 'a.pem', url: '' })
  t.deepEqual([problems, warnings], [[], ['redis.caFile has no effect, because redis.url is not set.']])
})

test('the key file counts as a secret file: not inside wwwroot, and not readable by every user', async t => {
  const { problems } = await resolveWith(t, { cert: 'a.pem', key: 'wwwroot/a.key' })
  t.is(problems.length, 1)
  t.regex(problems[0] ?? '', /^redis\.keyFile must not be public, but the file \.\/wwwroot\/a\.key is inside wwwroot/)
  const cwd = await tempFolder(t, files)
  await chmod(cwd, 0o755)
  const env = { ...enough, REDIS_URL: 'rediss://localhost', REDIS_CERT_FILE: 'a.pem', REDIS_KEY_FILE: 'a.key' }
  const { warnings } = await resolveSettings({ cwd, env })
  if (process.platform === 'win32') return
  t.deepEqual(keysOf(warnings), ['redis.keyFile'])
})
