// Text files of cases, which a reviewer reads like a document. A case is a line `input → result`. The other lines of a paragraph, except
// those that begin with #, are the settings of its cases. With UPDATE_GOLDEN=1, the results are written instead of compared.
import { writeFileSync } from 'node:fs'
import type { ExecutionContext } from 'ava'
import { readText, repository } from './repository.js'

const isUpdate = process.env.UPDATE_GOLDEN === '1'
const ARROW = ' → '

/** Asserts that each case of the file has its result. Bytes beyond ASCII are written as `\xfc`. */
export async function assertCases(
  t: ExecutionContext,
  path: string,
  resultOf: (input: string, settings: readonly string[]) => string | Promise<string>
): Promise<void> {
  const given = readText(path)
  const lines: string[] = []
  let settings: string[] = []
  for (const line of given.split('\n')) {
    const arrow = line.indexOf(ARROW.trimEnd())
    if (line === '') settings = []
    else if (!line.startsWith('#') && arrow === -1) settings.push(line)
    if (line.startsWith('#') || arrow === -1) lines.push(line)
    else {
      const input = line.slice(0, arrow).trimEnd()
      const bytes = input.replace(/\\x([\da-f]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
      lines.push(`${line.slice(0, arrow)}${ARROW}${await resultOf(bytes, settings)}`)
    }
  }
  if (isUpdate) writeFileSync(repository + path, lines.join('\n'))
  t.is(lines.join('\n'), isUpdate ? readText(path) : given)
}
