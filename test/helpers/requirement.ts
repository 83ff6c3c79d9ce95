import test, { type Implementation } from 'ava'

/**
 * Defines a test that needs a program or a permission on the machine. If it is missing, the test is skipped, but in CI
 * the test fails.
 */
export function testWhere(isThere: boolean, missing: string, title: string, implementation: Implementation<[]>): void {
  if (isThere) test(title, implementation)
  else if (process.env.CI === 'true') test(title, t => t.fail(missing))
  else test.skip(`${title} (${missing})`, implementation)
}
