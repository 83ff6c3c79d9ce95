// The code, the documents and docs/openapi.yaml list the same error codes and the same reasons.
import test from 'ava'
import { FAILURE_REASONS } from '#src/base/failure-reasons.js'
import { ERRORS } from '#src/web/errors/error-codes.js'
import { codeSpans, tableRows } from '../helpers/markdown.js'
import { filesBelow, readText } from '../helpers/repository.js'
import { readOpenApi } from './openapi.js'

const ERROR_CODES = Object.keys(ERRORS)
const page = readText('docs/reference/error-codes.md')
const [table = '', reasons = ''] = page.split('\n## Reasons\n')

test('docs/reference/error-codes.md and docs/openapi.yaml list exactly the error codes of the server', t => {
  const [header, ...rows] = tableRows(table)
  t.deepEqual(header, ['code', 'status', 'meaning', 'what to do'])
  t.deepEqual(
    rows.map(([code = '']) => codeSpans(code).join()),
    ERROR_CODES
  )
  for (const [code, status] of rows) t.regex(String(status), /\b[45]\d\d\b/, code)
  const { properties } = readOpenApi().components.schemas.Error as { properties: { error: { enum: string[] } } }
  t.deepEqual(properties.error.enum, ERROR_CODES)
})

test('a search of the code finds every error code and every reason, also outside of the two lists', t => {
  const lists = /\/(error-codes|failure-reasons)\.ts$/
  const sources = filesBelow('src').filter(path => !lists.test(path))
  const text = sources.map(readText).join('\n')
  for (const word of new Set([...ERROR_CODES, ...FAILURE_REASONS])) t.true(text.includes(`'${word}'`), word)
})

test('docs/reference/error-codes.md lists exactly the reasons of failures that are no error codes', t => {
  const [listed = ''] = reasons.split('The `reason` of `cross_site_request`')
  const other = ['reason', 'login_failed', 'outcome', 'platform_auth_callbacks_total', 'type', 'Retry-After']
  const documented = codeSpans(listed).filter(word => !other.includes(word))
  t.deepEqual(documented.sort(), FAILURE_REASONS.filter(reason => !ERROR_CODES.includes(reason)).sort())
})
