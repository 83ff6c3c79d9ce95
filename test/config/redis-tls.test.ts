import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { resolveSettings } from '#src/config/load.js'
import { selfSignedCertificate } from '../helpers/certificate.js'
import { testWhere } from '../helpers/requirement.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { areProblems, enough } from './given.js'

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
  /** Every user can read the key file. */
  readonly isOpen?: boolean
}

async function resolveWith(t: ExecutionContext, given: Given) {
  const cwd = await tempFolder(t, files)
  await chmod(cwd, 0o755)
  const { ca, cert, key, url = 'rediss://localhost' } = given
  for (const name of ['a.key', 'wwwroot/a.key']) await chmod(join(cwd, name), 0o600)
  if (given.isOpen) await chmod(join(cwd, 'a.key'), 0o644)
  const env = { ...enough, REDIS_URL: url, REDIS_CA_FILE: ca, REDIS_CERT_FILE: cert, REDIS_KEY_FILE: key }
  return { cwd, ...(await resolveSettings({ cwd, env })) }
}

test('the files of redisTls become absolute paths', async t => {
  const { cwd, values, problems, warnings } = await resolveWith(t, { ca: 'several.pem', cert: 'a.pem', key: 'a.key' })
  t.deepEqual([problems, warnings], [[], []])
  t.is(values['redis.caFile'], join(cwd, 'several.pem'))
  t.is(values['redis.certFile'], join(cwd, 'a.pem'))
  t.is(values['redis.keyFile'], join(cwd, 'a.key'))
})

const rejected: readonly (readonly [given: Given, problem: string])[] = [
  [{ ca: 'nothing.pem' }, 'redis.caFile "nothing.pem", no such file PEM one or more certificates'],
  [{ ca: 'wwwroot' }, 'redis.caFile "wwwroot", folder PEM certificates'],
  [{ ca: 'empty.pem' }, 'redis.caFile "empty.pem", no certificate'],
  [{ ca: 'damaged.pem' }, 'redis.caFile "damaged.pem", damaged certificate'],
  [{ cert: 'a.key', key: 'a.key' }, 'redis.certFile "a.key", no certificate PEM'],
  [{ cert: 'a.pem', key: 'a.pem' }, 'redis.keyFile "a.pem", no private key PEM without a passphrase'],
  [{ cert: 'a.pem', key: 'encrypted.key' }, 'redis.keyFile "encrypted.key", has a passphrase'],
  [{ cert: 'a.pem', key: 'damaged.key' }, 'redis.keyFile "damaged.key", damaged'],
  [{ cert: 'a.pem', key: 'other.key' }, 'redis.keyFile other.key not the key of redis.certFile'],
  [{ cert: 'a.pem' }, 'redis.certFile without redis.keyFile both'],
  [{ key: 'a.key' }, 'redis.keyFile without redis.certFile both'],
  [{ ca: 'a.pem', url: 'redis://localhost' }, 'redis.caFile redis.url TLS rediss:// remove'],
  [{ cert: 'a.pem', key: 'wwwroot/a.key' }, 'redis.keyFile public /wwwroot/a.key'],
  // A key in place of the path of its file is not shown.
  [{ cert: 'a.pem', key: key.replaceAll('\n', '\\n') }, 'redis.keyFile cannot be the key itself. path']
]

for (const [given, problem] of rejected) {
  test(`redisTls is refused with ${JSON.stringify(given).slice(0, 60)}`, async t => {
    const { problems } = await resolveWith(t, given)
    areProblems(t, problems, [problem])
    t.false(JSON.stringify(problems).includes('BEGIN'))
  })
}

test('without redis.url, the settings of TLS have no effect, with a warning', async t => {
  const { problems, warnings } = await resolveWith(t, { ca: 'a.pem', url: '' })
  t.deepEqual(problems, [])
  areProblems(t, warnings, ['redis.caFile no effect redis.url not set'])
})

const testPermissions = testWhere(process.platform !== 'win32', 'Windows has no permission bits')

testPermissions('the key file counts as a secret file: a key that every user can read gets a warning', async t => {
  const { warnings } = await resolveWith(t, { cert: 'a.pem', key: 'a.key', isOpen: true })
  areProblems(t, warnings, ['redis.keyFile read every user'])
})
