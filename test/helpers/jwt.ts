/** One part of a JWT. */
export function jwtPart(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** A JWT whose signature is not valid, for code that does not check signatures. */
export function jwt(claims: unknown, header: object = { alg: 'RS256' }): string {
  return `${jwtPart(header)}.${jwtPart(claims)}.signature`
}
