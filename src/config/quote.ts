/**
 * A text fit for a message: in quotation marks, at a bearable length, without characters a terminal would act on, and
 * its first line only, for what follows a quotation mark that was left open may be somebody's secrets.
 */
export function quote(text: string): string {
  const firstLine = text
    .split(/[\r\n]/, 1)
    .join('')
    .slice(0, 120)
  const shown = firstLine === text ? text : `${firstLine}…`
  return JSON.stringify(shown).replace(/[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, '?')
}
