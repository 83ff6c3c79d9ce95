/** The ID tokens of the stand-in provider. They are for candidates that create a session only after a real login. */
import { generateKeyPairSync, sign } from 'node:crypto'
import { CLIENT_ID, USER_INFO } from './settings.js'

export const ALGORITHM = 'ES256'
const KEY_ID = 'bench'
const HOUR_SECONDS = 3600

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

export const jwks = { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: KEY_ID, alg: ALGORITHM, use: 'sig' }] }

/**
 * @param {string} issuer
 * @param {string} nonce the one of the login, or an empty string
 */
export function idToken(issuer, nonce) {
  const iat = Math.floor(Date.now() / 1000)
  const claims = { ...USER_INFO, iss: issuer, aud: CLIENT_ID, iat, exp: iat + HOUR_SECONDS, ...(nonce && { nonce }) }
  const signed = [{ alg: ALGORITHM, kid: KEY_ID, typ: 'JWT' }, claims].map(encoded).join('.')
  // JWS needs the two numbers of the signature side by side and not in DER (RFC 7518 section 3.4).
  const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${signed}.${signature.toString('base64url')}`
}

function encoded(value) {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
