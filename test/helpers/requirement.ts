import test, { type Implementation } from 'ava'

/**
 * Returns a function that defines tests that need a program or a permission on the machine. If it is missing, the tests are
 * skipped, but in CI they fail.
 * @param define `test.serial` for a test that measures time: the other tests of its file then do not run at the same time
 */
export function testWhere(isThere: boolean, missing: string, define: typeof test | typeof test.serial = test) {
  return (title: string, implementation: Implementation<[]>): void => {
    if (isThere) define(title, implementation)
    else if (process.env.CI === 'true') define(title, t => t.fail(missing))
    else define.skip(`${title} (${missing})`, implementation)
  }
}
