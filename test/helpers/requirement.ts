import test, { type Implementation } from 'ava'

/** A test that needs a program or a right on the machine. Without it the test is listed as skipped, but in CI it fails. */
export function testWhere(isThere: boolean, missing: string, title: string, implementation: Implementation<[]>): void {
  if (isThere) test(title, implementation)
  else if (process.env.CI === 'true') test(title, t => t.fail(missing))
  else test.skip(`${title} (${missing})`, implementation)
}
