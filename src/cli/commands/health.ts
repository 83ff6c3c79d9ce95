import { resolveSettings } from '../../config/load.js'
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
  const url = `http://${hostInUrl(host)}:${port}/healthz`
  const { status } = await askLoopback(url, LONGEST_MS).catch((error: unknown) => {
    throw new RunError(`The server does not respond at ${url}: ${messageOf(error)}`)
  })
  if (status === 200) return exitCodes.fine
  throw new RunError(`${url} responded with ${status}.`)
}

const LONGEST_MS = 3000

/** A server that listens on all addresses is asked at the loopback address. */
function hostInUrl(host: string | undefined): string {
  if (host === undefined || host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
