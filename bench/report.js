/** Computes medians and prints tables in Markdown. */

/** @param {number[]} values */
export function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/**
 * @param {string[]} head
 * @param {(string | number)[][]} rows in each row the first cell is text and the others are numbers
 */
export function table(head, rows) {
  const lines = [head, ...rows].map(line => line.map(String))
  const widths = head.map((_, column) => Math.max(3, ...lines.map(line => line[column].length)))
  const pad = (cell, column) => (column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]))
  const [first, ...rest] = lines.map(line => `| ${line.map(pad).join(' | ')} |`)
  const rule = `|${widths.map((width, column) => (column === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`
  return `${[first, rule, ...rest].join('\n')}\n`
}

/** @param {string} text */
export function print(text) {
  process.stdout.write(`${text}\n`)
}
