import { randomBytes } from 'node:crypto'

/** 384 random bits as 64 characters that need no quoting in any file or shell. */
export function newSecret(): string {
  return randomBytes(48).toString('base64url')
}
