import { inspect } from 'node:util'
import type { ExecutionContext } from 'ava'

/** Asserts that the error contains none of the secrets, whether it is logged, printed or sent as JSON. */
export function holdsNone(t: ExecutionContext, error: unknown, secrets: readonly string[]): void {
  const { message, stack, cause } = error as Error
  const said = [message, stack, String(error), JSON.stringify(error), inspect(error, { depth: 20, showHidden: true })]
  for (const secret of secrets) {
    for (const spelling of [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')]) {
      t.false(said.join('\n').includes(spelling), `${secret} in ${said.join('\n')}`)
    }
  }
  t.is(cause, undefined)
}
