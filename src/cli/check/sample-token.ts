import { randomBytes } from 'node:crypto'
import { APS, type ProviderMetadata } from '../../provider/metadata.js'

const LIFETIME_SECONDS = 3599
// With this number and the default scopes, a token has about 1,000 characters, like the tokens of Autodesk Platform Services.
const RANDOM_CHARACTERS = 128

/**
 * Returns an access token with a random signature. Its length and entropy are similar to those of a real token of Autodesk
 * Platform Services for these scopes.
 */
export function sampleToken(clientId: string, scope: readonly string[], now: number): string {
  const random = (characters: number) => randomBytes(characters).toString('base64url').slice(0, characters)
  const header = { alg: 'RS256', kid: random(43), 'pi.atm': 'assc', typ: 'JWT' }
  const payload = {
    scope,
    client_id: clientId,
    iss: 'https://developer.api.autodesk.com',
    aud: 'https://autodesk.com',
    jti: random(RANDOM_CHARACTERS),
    exp: Math.floor(now / 1000) + LIFETIME_SECONDS,
    userid: random(12)
  }
  return unsigned(header, payload)
}

export const SAMPLE_NONCE = randomBytes(32).toString('base64url')
const SAMPLE_SUBJECT = randomBytes(27).toString('base64url')

/** The metadata of a provider that has every endpoint. */
export const sampleMetadata: Omit<ProviderMetadata, 'isAps'> = {
  ...APS,
  issParameterSupported: false,
  scopesSupported: undefined
}

/** Returns an ID token with the claims that providers usually send, for the login with `SAMPLE_NONCE`. */
export function sampleIdToken(clientId: string, now: number): string {
  const random = (characters: number) => randomBytes(characters).toString('base64url').slice(0, characters)
  const seconds = Math.floor(now / 1000)
  const payload = {
    iss: sampleMetadata.issuer,
    sub: SAMPLE_SUBJECT,
    aud: clientId,
    azp: clientId,
    iat: seconds,
    auth_time: seconds,
    exp: seconds + LIFETIME_SECONDS,
    nonce: SAMPLE_NONCE,
    jti: random(36),
    sid: random(36),
    at_hash: random(22),
    name: 'Somebody of a Usual Name',
    preferred_username: 'somebody',
    email: 'somebody@mail.example'
  }
  return unsigned({ alg: 'RS256', kid: random(43), typ: 'JWT' }, payload)
}

function unsigned(header: object, payload: object): string {
  const parts = [header, payload].map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
  return [...parts, randomBytes(256).toString('base64url')].join('.')
}
