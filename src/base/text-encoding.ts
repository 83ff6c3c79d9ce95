/** A way to write bytes as a string. */
export interface TextEncoding {
  textOf(bytes: Buffer): string
  /**
   * Returns the bytes. Several strings decode to the same bytes, because Node's decoder ignores invalid characters and unused bits.
   * To accept only one spelling, encode the bytes again and compare.
   */
  bytesOf(text: string): Buffer
  /** Calls `draw`, which returns random bytes, once or several times. Returns one result as a string. */
  draw(draw: () => Buffer): string
}

/** Base64url (RFC 4648 section 5), for strings that no browser sends. */
export const base64url: TextEncoding = {
  textOf: bytes => bytes.toString('base64url'),
  bytesOf: text => Buffer.from(text, 'base64url'),
  draw: draw => draw().toString('base64url')
}

// What rules of firewalls look for: a hexadecimal number (OWASP CRS, rule 942450), and the names of files (930120).
const SUSPICIOUS = /\.(0x|env|git|nsr|ssh|zsh)/i
const MAX_DRAWS = 8

/**
 * For cookies and for `state`: base64url with `.` in place of `-`. Web application firewalls take two hyphens for the comment of an
 * SQL injection (OWASP CRS, rule 942440). `draw` repeats until the string contains nothing else that firewalls look for. Of 4,000
 * characters, one string in 25 does.
 */
export const dottedText: TextEncoding = {
  textOf: bytes => base64url.textOf(bytes).replaceAll('-', '.'),
  bytesOf: text => base64url.bytesOf(text.replaceAll('.', '-')),
  draw(draw) {
    let text = dottedText.textOf(draw())
    for (let draws = 1; draws < MAX_DRAWS && SUSPICIOUS.test(text); draws++) text = dottedText.textOf(draw())
    return text
  }
}
