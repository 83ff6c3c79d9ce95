import { resolveSettings } from '../../config/load.js'
import { localUrlOf } from '../../config/types/urls.js'
import { type Command, sourcesOf } from '../terminal/command.js'
import { exitCodes, messageOf, RunError } from '../terminal/expected-errors.js'
import { askLoopback } from '../terminal/loopback.js'

/**
 * Asks the server that was started with the same flags, variables and settings file for `/healthz`, so that the health check of
 * a container needs no other copy of host and port. Other settings may be invalid or missing.
 */
export const health: Command = async function health(invocation) {
  const { values } = await resolveSettings(sourcesOf(invocation))
  const { host, port } = values
  if (!port) throw new RunError('The server listens on a free port (port is 0), which this command does not know.')
  const url = `${localUrlOf({ port, host })}/healthz`
  const { status } = await askLoopback(url, LONGEST_MS).catch((error: unknown) => {
    throw new RunError(`The server does not respond at ${url}: ${messageOf(error)}`)
  })
  if (status === 200) return exitCodes.fine
  throw new RunError(`${url} responded with ${status}.`)
}

const LONGEST_MS = 3000
