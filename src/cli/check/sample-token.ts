import { randomBytes } from 'node:crypto'

const LIFETIME_SECONDS = 3599
// About 1,000 characters with the default scopes, as the platform's are.
const RANDOM_CHARACTERS = 128

/** An access token as long, and as hard to compress, as the platform's for these scopes. It is signed by nobody. */
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
  const parts = [header, payload].map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
  return [...parts, randomBytes(256).toString('base64url')].join('.')
}
