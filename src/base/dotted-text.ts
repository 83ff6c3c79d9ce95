/**
 * Encodes bytes for cookies and for `state`: base64url (RFC 4648 section 5) with `.` in place of `-`. Web application firewalls
 * take two hyphens for the comment of an SQL injection (OWASP CRS, rule 942440).
 */
export function dottedText(bytes: Buffer): string {
  return bytes.toString('base64url').replaceAll('-', '.')
}

/**
 * Returns the bytes. Several strings decode to the same bytes, because Node's decoder ignores invalid characters and unused bits.
 * To accept only one spelling, encode the bytes again and compare.
 */
export function bytesOf(text: string): Buffer {
  return Buffer.from(text.replaceAll('.', '-'), 'base64url')
}

// What rules of firewalls look for: a hexadecimal number (OWASP CRS, rule 942450), and the names of files (930120).
const SUSPICIOUS = /\.(0x|env|git|nsr|ssh|zsh)/i
const MAX_DRAWS = 8

/** Draws random bytes until their text contains nothing that firewalls look for. Of 4,000 characters, one in 25 does. */
export function drawText(draw: () => Buffer): string {
  let text = dottedText(draw())
  for (let draws = 1; draws < MAX_DRAWS && SUSPICIOUS.test(text); draws++) text = dottedText(draw())
  return text
}
