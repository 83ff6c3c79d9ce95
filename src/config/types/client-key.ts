import { createPrivateKey, type JsonWebKeyInput, type KeyObject } from 'node:crypto'
import { REJECTED, type ValueType } from './value-type.js'

// The private key with which the server authenticates to the provider (private_key_jwt, OpenID Connect Core section 9).

export type KeyAlgorithm = 'RS256' | 'PS256' | 'ES256' | 'EdDSA'

export interface ClientKey {
  readonly key: KeyObject
  /** The algorithm with which this key signs (RFC 7518 section 3.1, RFC 8037). */
  readonly algorithm: KeyAlgorithm
  /** The key id in a JWK (RFC 7517 section 4.5). */
  readonly keyId: string | undefined
  /** The key as it was written. */
  readonly text: string
}

/** The key, the algorithm and the key id with which the server signs. */
export type SigningKey = Omit<ClientKey, 'text'>

/** The settings from which `signingKeyOf` derives the signing key. */
interface KeySettings {
  readonly clientKey: ClientKey | undefined
  readonly clientKeyId: string | undefined
}

/** Returns the key with which the server signs, or undefined if no key is configured. */
export function signingKeyOf({ clientKey, clientKeyId }: KeySettings): SigningKey | undefined {
  return clientKey && { ...clientKey, keyId: clientKeyId ?? clientKey.keyId }
}

// RFC 7518 sections 3.3 and 3.5.
const RSA_BITS = 2048

/** The type of the setting `platform.clientKey`. */
export const clientKey: ValueType<ClientKey, string> = {
  allowed: 'a private key without a passphrase as PEM or JWK: RSA with 2048 bits or more, P-256 or Ed25519',
  json: { type: 'string', pattern: 'PRIVATE KEY|\\{' },
  isFileContent: true,
  parse(written) {
    if (typeof written !== 'string') return REJECTED
    const text = written.trim()
    // A variable of `docker --env-file` or of a PaaS has one line, so a PEM file in it often has the two characters \n
    // instead of line breaks. A PEM file contains no backslash otherwise (RFC 7468 section 3).
    return text.startsWith('{') ? parseJwk(text) : parsePem(text.replace(/(\\r)?\\n/g, '\n').trim())
  },
  write: ({ text }) => text
}

function parsePem(text: string) {
  const [, label = ''] = /-----BEGIN ([A-Z0-9 ]+)-----/.exec(text) ?? []
  if (!label) return { reason: 'it is neither a PEM file nor a JWK' }
  if (label.includes('ENCRYPTED') || text.includes('Proc-Type: 4,ENCRYPTED')) return { reason: 'it has a passphrase' }
  if (!label.endsWith('PRIVATE KEY')) return { reason: `it is a ${label.toLowerCase()} and not a private key` }
  return parseKey(text, text)
}

function parseJwk(text: string) {
  let jwk: Record<string, unknown>
  try {
    jwk = JSON.parse(text)
  } catch {
    return { reason: 'it is not valid JSON' }
  }
  if ('keys' in jwk) return { reason: 'it contains a set of keys and not a single key' }
  const { kty } = jwk
  if (kty === 'oct') return { reason: 'it is a symmetric key (kty oct), which has no public key for the provider' }
  if (kty === undefined) return { reason: 'it is not a JWK, because it has no kty' }
  if (!('d' in jwk)) return { reason: 'it is a public key' }
  return parseKey({ key: jwk, format: 'jwk' }, text, jwk)
}

/** @param jwk the members of a JWK, or an empty object for a PEM file */
function parseKey(input: string | JsonWebKeyInput, text: string, { kid, alg }: Record<string, unknown> = {}) {
  let key: KeyObject
  try {
    key = createPrivateKey(input)
  } catch {
    // The message of the error is not shown, because it may quote the key.
    return { reason: 'it is damaged' }
  }
  const suitable = algorithmsOf(key)
  if (typeof suitable === 'string') return { reason: suitable }
  // A JWK with `alg` may be used only with this algorithm (RFC 7517 section 4.4).
  const algorithm = suitable.find(one => alg === undefined || one === alg)
  if (algorithm === undefined) return { reason: 'its alg is not one of the algorithms of this key' }
  const keyId = typeof kid === 'string' ? kid : undefined
  return { value: { key, algorithm, keyId, text } }
}

/** Returns the algorithms with which the key could sign, the usual one first, or the reason why the key cannot be used. */
function algorithmsOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): KeyAlgorithm[] | string {
  if (type === 'rsa' || type === 'rsa-pss') {
    const bits = details?.modulusLength ?? 0
    if (bits < RSA_BITS) return `it has only ${bits} bits`
    return type === 'rsa' ? ['RS256', 'PS256'] : ['PS256']
  }
  if (type === 'ec') return details?.namedCurve === 'prime256v1' ? ['ES256'] : `its curve is ${details?.namedCurve}`
  return type === 'ed25519' ? ['EdDSA'] : `it is a key of the type ${type}`
}
