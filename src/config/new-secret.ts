import { randomBytes } from 'node:crypto'

/** Returns 384 random bits as 64 characters, which need no quotation marks in any file or shell. */
export function newSecret(): string {
  return randomBytes(48).toString('base64url')
}
