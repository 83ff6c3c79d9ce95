/** Splits a template literal at its white space. Backslashes stay as they are written, so that lists of URLs are easy to read. */
export function words(text: TemplateStringsArray, ...values: readonly string[]): string[] {
  return String.raw(text, ...values)
    .trim()
    .split(/\s+/)
}
