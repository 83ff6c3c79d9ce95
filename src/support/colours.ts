export type Colours = ReturnType<typeof coloursFor>

/** An output for people, and the environment variables that decide about its colours. */
export interface ColouredOutput {
  readonly stdout: { readonly isTTY?: boolean | undefined }
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Returns functions that colour a text for a terminal. If the output has no colours, they return the text unchanged. */
export function coloursFor(output: ColouredOutput) {
  const isColoured = hasColours(output)
  const between = (begin: number, end: number) => (text: string) =>
    isColoured ? `\u001b[${begin}m${text}\u001b[${end}m` : text
  return {
    bold: between(1, 22),
    dim: between(2, 22),
    red: between(31, 39),
    green: between(32, 39),
    yellow: between(33, 39),
    cyan: between(36, 39)
  }
}

/**
 * By default, only a terminal has colours. FORCE_COLOR switches them on for every output, and its values 0 and false
 * switch them off. It takes precedence over NO_COLOR (https://no-color.org), as in Node itself. An empty variable
 * counts as not set.
 */
function hasColours({ stdout, env: { FORCE_COLOR, NO_COLOR, TERM } }: ColouredOutput): boolean {
  if (FORCE_COLOR) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false'
  return stdout.isTTY === true && !NO_COLOR && TERM !== 'dumb'
}
