// Private keys of clients, one for each signature algorithm.
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { KeyAlgorithm } from '#src/config/types/client-key.js'

export function newKey(algorithm: KeyAlgorithm): KeyObject {
  if (algorithm === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  if (algorithm === 'EdDSA') return generateKeyPairSync('ed25519').privateKey
  return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
}

export function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

export function jwkOf(key: KeyObject, members: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ ...key.export({ format: 'jwk' }), ...members })
}

/** The public key as a provider stores it. */
export function publicJwkOf(key: KeyObject, members: Readonly<Record<string, unknown>> = {}) {
  return { ...createPublicKey(key).export({ format: 'jwk' }), ...members }
}
