import { createHash } from 'node:crypto'

/** Returns the S256 challenge of a verifier (RFC 7636 section 4.2). */
export function codeChallengeOf(codeVerifier: string): string {
  return createHash('sha256').update(codeVerifier).digest('base64url')
}
