import type { Output } from './terminal.js'

// Wraps lines for a terminal. Output to a pipe is not wrapped, so that a script gets one message per line.

/** Returns the width of the terminal, or undefined if the output is not a terminal. */
export function columnsOf({ isTTY, columns }: Output): number | undefined {
  return isTTY === true ? (columns ?? 80) : undefined
}

/**
 * Breaks a text between words. A word that is longer than a line, such as an address, stays whole.
 * @param indent the number of spaces before each line except the first, which the caller has already started
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

/** Wraps each line of a message. Continuation lines are indented by two more columns than the first line. */
export function wrapLines(message: string, columns: number | undefined): string {
  return message
    .split('\n')
    .map(line => {
      const [space = ''] = /^ */.exec(line) ?? []
      return `${space}${wrap(line.trimStart(), columns, space.length + 2)}`
    })
    .join('\n')
}
