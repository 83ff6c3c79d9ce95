import { createServer } from 'node:net'
import { localUrlOf } from '../../../config/addresses.js'
import { errorCode } from '../../../config/read-file.js'
import type { Config } from '../../../config/settings.js'
import { type Listener, listenError, listeners } from '../../listen-error.js'
import { type Finding, findingsFor } from '../finding.js'

const { ok, warning, failed } = findingsFor('port')

const TIMEOUT_MS = 2000
const BODY_LIMIT = 1000

/** Checks that the ports of the server are free, by listening on each for a moment. */
export async function port(config: Config): Promise<Finding[]> {
  const { metrics, forwardAuth, port, host } = config
  const found = await tryToListen({ port, host, listener: 'server' })
  const others: Finding[] = []
  if (forwardAuth.port !== undefined) {
    others.push(...(await tryToListen({ port: forwardAuth.port, host: forwardAuth.host, listener: 'forwardAuth' })))
  }
  if (metrics.port !== undefined) {
    others.push(...(await tryToListen({ port: metrics.port, host: metrics.host, listener: 'metrics' })))
  }
  // If this server is already running, it also uses the ports of its other listeners. The findings for these ports are then
  // warnings.
  const isRunning = found.some(({ status }) => status === 'warning')
  return [...found, ...others.map(finding => (isRunning ? { ...finding, status: 'warning' as const } : finding))]
}

interface Address {
  readonly port: number
  readonly host: string | undefined
  readonly listener: Listener
}

async function tryToListen({ port, host, listener }: Address): Promise<Finding[]> {
  const { portOption, hostOption } = listeners[listener]
  try {
    await listenOnce(port, host)
    return [ok(port === 0 ? `With ${portOption} 0, the system chooses a free port.` : `Port ${port} is free.`)]
  } catch (error) {
    if (errorCode(error) === 'EADDRINUSE' && (await isThisServer(port, host))) {
      const message = `A platform-auth-server is already running on port ${port}.`
      return [warning(message, `Stop it before you start another, or choose another port with ${portOption}.`)]
    }
    const [message = '', next = ''] = listenError(error, listener).message.split('. ')
    const advice = next === '' ? `Choose another port with ${portOption}, or another host with ${hostOption}.` : next
    return [failed(`${message}.`, advice)]
  }
}

function listenOnce(port: number, host: string | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ port, ...(host !== undefined && { host }) }, () => server.close(() => resolve()))
  })
}

async function isThisServer(port: number, host: string | undefined): Promise<boolean> {
  try {
    const url = `${localUrlOf({ port, host })}/healthz`
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) })
    if (Number(response.headers.get('content-length') ?? BODY_LIMIT) >= BODY_LIMIT) {
      await response.body?.cancel()
      return false
    }
    const { status } = (await response.json()) as { status?: unknown }
    return response.status === 200 && status === 'ok'
  } catch {
    return false
  }
}
