import type { DemoChoices } from '../open-demo.js'
import type { Invocation } from './command.js'
import { UsageError } from './errors.js'

/** Returns the options of the demo, or undefined without `--demo`. Throws UsageError for an invalid value. */
export function readDemoOptions({ options }: Invocation): DemoChoices | undefined {
  const { demo, demoPort, demoTokenLifetime } = options
  const port = wholeNumber('--demo-port', demoPort, 0, 65_535)
  const tokenLifetimeSeconds = wholeNumber('--demo-token-lifetime', demoTokenLifetime, 1, 86_400)
  if (demo === true) return { port, tokenLifetimeSeconds }
  if (port !== undefined) throw new UsageError('--demo-port needs --demo.')
  if (tokenLifetimeSeconds !== undefined) throw new UsageError('--demo-token-lifetime needs --demo.')
  return undefined
}

function wholeNumber(flag: string, text: unknown, minimum: number, maximum: number): number | undefined {
  if (text === undefined) return undefined
  const number = /^\d+$/.test(String(text)) ? Number(text) : Number.NaN
  if (number >= minimum && number <= maximum) return number
  throw new UsageError(`${flag} must be a whole number from ${minimum} to ${maximum}.`)
}
