import { styleText } from 'node:util'

/** Functions that colour a string for a terminal. */
export type Colours = Readonly<Record<(typeof formats)[number], (text: string) => string>>

const formats = ['bold', 'dim', 'red', 'green', 'yellow', 'cyan'] as const

/** An output stream, and the environment variables that switch its colours on or off. */
interface ColouredOutput {
  readonly stdout: { readonly isTTY?: boolean | undefined }
  readonly env: Readonly<Record<string, string | undefined>>
}

/**
 * Returns functions that colour a string for a terminal. If the output has no colours, they return the string
 * unchanged.
 */
export function coloursFor(output: ColouredOutput): Colours {
  const isColoured = hasColours(output)
  // `hasColours` has already checked the output, so `styleText` must not check the standard output again.
  const functions = formats.map(format => {
    const colour = (text: string) => (isColoured ? styleText(format, text, { validateStream: false }) : text)
    return [format, colour] as const
  })
  return Object.fromEntries(functions) as Colours
}

/**
 * By default, only a terminal has colours. FORCE_COLOR switches them on for every output, unless its value is 0 or
 * false, which switches them off. It takes precedence over NO_COLOR (https://no-color.org), as in Node itself. An empty
 * variable counts as not set.
 */
function hasColours({ stdout, env: { FORCE_COLOR, NO_COLOR, TERM } }: ColouredOutput): boolean {
  if (FORCE_COLOR) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false'
  return stdout.isTTY === true && !NO_COLOR && TERM !== 'dumb'
}
