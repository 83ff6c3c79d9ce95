import test, { type Implementation } from 'ava'

/** `test.serial` for a test that measures time: the other tests of its file then do not run at the same time. */
type DefineTest = typeof test | typeof test.serial

/**
 * Defines a test that needs a program or a permission on the machine. If it is missing, the test is skipped, but in CI
 * the test fails.
 */
export function testWhere(
  isThere: boolean,
  missing: string,
  title: string,
  implementation: Implementation<[]>,
  define: DefineTest = test
): void {
  if (isThere) define(title, implementation)
  else if (process.env.CI === 'true') define(title, t => t.fail(missing))
  else define.skip(`${title} (${missing})`, implementation)
}
