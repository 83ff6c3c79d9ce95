import type { Output } from './terminal.js'

// Lines for a terminal. In a pipe nothing is wrapped, so that a script gets one line for each thing.

/** The columns to write in, or undefined where the output is no terminal. */
export function columnsOf({ isTTY, columns }: Output): number | undefined {
  return isTTY === true ? (columns ?? 80) : undefined
}

/**
 * Breaks a text between words. A word that is longer than a line, such as an address, stays whole.
 * @param indent columns in front of every line but the first, which the caller has begun already
 */
export function wrap(text: string, columns: number | undefined, indent = 0): string {
  if (columns === undefined) return text
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && indent + line.length + 1 + word.length > columns) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].join(`\n${' '.repeat(indent)}`)
}

/** Wraps each line of a message. The lines that continue one are indented by two columns more than its beginning. */
export function wrapLines(message: string, columns: number | undefined): string {
  return message
    .split('\n')
    .map(line => {
      const [space = ''] = /^ */.exec(line) ?? []
      return `${space}${wrap(line.trimStart(), columns, space.length + 2)}`
    })
    .join('\n')
}
