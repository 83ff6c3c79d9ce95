/**
 * Returns the value of the first cookie called `name` in a `Cookie` header (RFC 6265 section 4.2), or undefined. The
 * function searches for the name and does not parse the whole header, because this is faster and every request needs
 * it.
 */
export function readCookie(header: string, name: string): string | undefined {
  let from = 0
  for (;;) {
    const at = header.indexOf(name, from)
    if (at === -1) return undefined
    const end = at + name.length
    if (header[end] === '=' && startsPair(header, at)) {
      const semicolon = header.indexOf(';', end)
      return header.slice(end + 1, semicolon === -1 ? undefined : semicolon).trimEnd()
    }
    from = end
  }
}

function startsPair(header: string, at: number): boolean {
  let before = at - 1
  while (header[before] === ' ' || header[before] === '\t') before--
  return before < 0 || header[before] === ';'
}
