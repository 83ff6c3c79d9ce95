import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { resolveSettings } from '#src/config/load.js'
import { selfSignedCertificate } from '../helpers/certificate.js'
import { testWhere } from '../helpers/requirement.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { areProblems, enough } from './given.js'
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

const inEnvironment = ({ ca, cert, key, url = 'rediss://localhost' }: Given) => ({
  files,
  env: { REDIS_URL: url, REDIS_CA_FILE: ca, REDIS_CERT_FILE: cert, REDIS_KEY_FILE: key },
  modes: { 'a.key': 0o600, 'wwwroot/a.key': 0o600 }
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
  'a key in place of its path': inEnvironment({ cert: 'a.pem', key: key.replaceAll('\n', '\\n') })
})

const testPermissions = testWhere(process.platform !== 'win32', 'Windows has no permission bits')

testPermissions('the key file counts as a secret file: a key that every user can read gets a warning', async t => {
  const { warnings } = await resolveWith(t, { cert: 'a.pem', key: 'a.key', isOpen: true })
  areProblems(t, warnings, ['redis.keyFile read every user'])
})
