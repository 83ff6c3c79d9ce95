import { runInNewContext } from 'node:vm'
import test from 'ava'
import { errorCode, isError } from '#src/base/error-code.js'

const inOtherRealm = (code: string): unknown => runInNewContext(code)

test('an error and its code are recognised in every realm', t => {
  const error = (code: unknown) => Object.assign(new Error('x'), { code })
  const other = inOtherRealm("Object.assign(new TypeError('x'), { code: 'ENOENT' })")
  t.false(other instanceof Error)
  const rows: readonly (readonly [thrown: unknown, isError: boolean, code: string | undefined])[] = [
    [error('ENOENT'), true, 'ENOENT'],
    [other, true, 'ENOENT'],
    [new DOMException('x', 'AbortError'), true, undefined],
    [error(5), true, undefined],
    [{ message: 'x', code: 'ENOENT' }, false, undefined],
    ['ENOENT', false, undefined],
    [undefined, false, undefined]
  ]
  for (const [thrown, expected, code] of rows) t.deepEqual([isError(thrown), errorCode(thrown)], [expected, code])
})
