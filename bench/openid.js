/** What the stand-in providers say about themselves, and the ID tokens that they sign. */
import { generateKeyPairSync, sign } from 'node:crypto'
import { CLIENT_ID } from './settings.js'

const KEY_ID = 'bench'
const HOUR_SECONDS = 3600

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

export const jwks = { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: KEY_ID, alg: 'RS256', use: 'sig' }] }

/** @param {string} issuer */
export function discovery(issuer) {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
    code_challenge_methods_supported: ['S256'],
    scopes_supported: ['openid', 'profile', 'email', 'offline_access', 'data:read', 'viewables:read']
  }
}

/**
 * @param {string} user
 * @returns the claims of a user. oauth2-proxy asks the userinfo endpoint if one of them is missing in the ID token
 */
export function claimsOf(user) {
  return {
    sub: user,
    name: `User ${user}`,
    preferred_username: user,
    email: `${user}@mail.example`,
    email_verified: true,
    groups: ['users']
  }
}

/**
 * @param {string} issuer
 * @param {string} user
 * @param {string | undefined} nonce the one of the login
 */
export function idToken(issuer, user, nonce) {
  const iat = Math.floor(Date.now() / 1000)
  const claims = { ...claimsOf(user), iss: issuer, aud: CLIENT_ID, iat, exp: iat + HOUR_SECONDS, nonce }
  const signed = [{ alg: 'RS256', kid: KEY_ID, typ: 'JWT' }, claims]
    .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${signed}.${sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`
}
