import type { Terminal } from './terminal.js'

export interface Colours {
  bold(text: string): string
  dim(text: string): string
  red(text: string): string
  green(text: string): string
  yellow(text: string): string
  cyan(text: string): string
}

/**
 * Returns functions that colour a text for a terminal. They return the text unchanged if the output is not a terminal, if
 * the terminal has no colours, or if NO_COLOR is set (https://no-color.org).
 */
export function coloursFor({ stdout, env }: Pick<Terminal, 'stdout' | 'env'>): Colours {
  const isColoured = stdout.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
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
