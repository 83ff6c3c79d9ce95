/**
 * Quotes a text for a message. It shortens the text and replaces characters that a terminal would interpret. It keeps
 * only the first line, because an unclosed quotation mark can make a value include the following lines and their
 * secrets.
 */
export function quote(text: string): string {
  const firstLine = text
    .split(/[\r\n]/, 1)
    .join('')
    .slice(0, 120)
  const shown = firstLine === text ? text : `${firstLine}…`
  return JSON.stringify(shown).replace(/[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, '?')
}
