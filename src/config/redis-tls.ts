import { createPrivateKey, X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import type { Checked } from './check-value.js'
import { quote } from './errors.js'
import { readTextFile, whyUnreadable } from './read-file.js'
import type { IsGiven, SettingsFinding } from './rules.js'
import { type SettingKey, settingOf, type Values } from './settings.js'

// The checks of the settings `redisTls`, which are the paths of PEM files. The client of Redis reads the files again for each
// connection.

const keys = ['redisTls.caFile', 'redisTls.certFile', 'redisTls.keyFile'] as const

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** Makes the path of a file with certificates absolute. Rejects a file without a valid certificate. */
export function checkCertificates(key: SettingKey): (given: string, cwd: string) => Promise<Checked> {
  return checkPem(key, text => {
    const certificates = text.match(CERTIFICATE)
    if (!certificates) return 'it contains no certificate in PEM format'
    return certificates.every(isCertificate) ? undefined : 'it contains a damaged certificate'
  })
}

/** Makes the path of the private key absolute. Rejects a file without a usable key. */
export const checkRedisKey = checkPem('redisTls.keyFile', text => {
  if (!text.includes('PRIVATE KEY-----')) return 'it contains no private key in PEM format'
  if (text.includes('ENCRYPTED')) return 'its key has a passphrase'
  return isKey(text) ? undefined : 'its key is damaged'
})

function checkPem(key: SettingKey, whyUnusable: (text: string) => string | undefined) {
  return async function check(given: string, cwd: string): Promise<Checked> {
    const path = resolve(cwd, given)
    const why = await readTextFile(path).then(whyUnusable, whyUnreadable)
    if (why === undefined) return { value: path }
    // The value may be the key itself, given instead of its path.
    const found = given.includes('PRIVATE KEY') ? 'is not a path' : `found the text ${quote(given)}, but ${why}`
    return { rejected: [`${found}; allowed: the path of ${settingOf(key).type.allowed}`] }
  }
}

/** Checks the settings `redisTls` together and with `redisUrl`. Their files have passed their own checks. */
export async function redisTlsFindings(values: Values, isGiven: IsGiven): Promise<SettingsFinding[]> {
  const { redisUrl, 'redisTls.certFile': certFile, 'redisTls.keyFile': keyFile } = values
  const given = keys.filter(isGiven)
  if (!isGiven('redisUrl')) {
    return given.map(key => ({ key, isWarning: true, message: 'has no effect, because redisUrl is not set' }))
  }
  if (redisUrl && !redisUrl.tls) {
    const message = 'is set, but redisUrl does not use TLS; change its beginning to rediss://, or remove this setting'
    return given.map(key => ({ key, message }))
  }
  if (certFile !== undefined && keyFile !== undefined) {
    const [certificate, key] = await Promise.all([readTextFile(certFile), readTextFile(keyFile)])
    if (new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))) return []
    return [{ key: 'redisTls.keyFile', message: `found ${quote(keyFile)}, which is not the key of redisTls.certFile` }]
  }
  const pairs = [
    ['redisTls.certFile', 'redisTls.keyFile'],
    ['redisTls.keyFile', 'redisTls.certFile']
  ] as const
  return pairs
    .filter(([key, other]) => isGiven(key) && !isGiven(other))
    .map(([key, other]) => ({ key, message: `is set without ${other}; set both or neither` }))
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined
  } catch {
    return false
  }
}

function isKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).type === 'private'
  } catch {
    return false
  }
}
