// Values of the chart that the examples do not show. They are in chart-values.txt.
import { linesOf } from '../helpers/markdown.js'
import { readText } from '../helpers/repository.js'

const [, rejected = '', accepted = ''] =
  readText('test/deploy/chart-values.txt').split(/^# (?:rejected|accepted): .*\n/m)

/** Values that the chart must reject, and a part of its message. */
export const rejectedValues = rowsOf(rejected)

/** Values that the chart must accept, and a pattern that its output then contains, or that it no longer contains. */
export const acceptedValues = rowsOf(accepted).map(([values, text]) => ({
  values,
  pattern: new RegExp(text.replace(/^not /, '')),
  isThere: !text.startsWith('not ')
}))

function rowsOf(text: string): (readonly [values: string, expected: string])[] {
  return linesOf(text).map(line => line.split(' => ', 2) as [string, string])
}
