import { createServer } from 'node:net'
import { localUrlOf } from '../../config/addresses.js'
import { errorCode } from '../../config/read-file.js'
import type { Config } from '../../config/settings.js'
import { type Listener, listenError, listeners } from '../listen-error.js'
import { about, type Finding } from './finding.js'

const { ok, warning, failed } = about('port')

const ANSWER_MS = 2000
const LONGEST_ANSWER = 1000

/** Listens for a moment where the server would. */
export async function port(config: Config): Promise<Finding[]> {
  const { metrics, port, host } = config
  const found = await tryToListen({ port, host, listener: 'server' })
  if (metrics.port === undefined) return found
  const ofMetrics = await tryToListen({ port: metrics.port, host: metrics.host, listener: 'metrics' })
  // Where the server runs already, so do its metrics.
  const runs = found.some(({ status }) => status === 'warning')
  return [...found, ...ofMetrics.map(finding => (runs ? { ...finding, status: 'warning' as const } : finding))]
}

interface Wanted {
  readonly port: number
  readonly host: string | undefined
  readonly listener: Listener
}

async function tryToListen({ port, host, listener }: Wanted): Promise<Finding[]> {
  const { byPort, byHost } = listeners[listener]
  try {
    await listenOnce(port, host)
    return [ok(port === 0 ? `With ${byPort} 0 any free port is taken.` : `Port ${port} is free.`)]
  } catch (error) {
    if (errorCode(error) === 'EADDRINUSE' && (await isThisServer(port, host))) {
      const message = `A platform-auth-server answers on port ${port} already.`
      return [warning(message, `Stop it before you start another, or choose another port with ${byPort}.`)]
    }
    const [message = '', next = ''] = listenError(error, listener).message.split('; ')
    const advice = next === '' ? `Choose another with ${byPort}, or another host with ${byHost}.` : capitalised(next)
    return [failed(`${message}.`, advice)]
  }
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
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
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(ANSWER_MS) })
    if (Number(response.headers.get('content-length') ?? LONGEST_ANSWER) >= LONGEST_ANSWER) {
      await response.body?.cancel()
      return false
    }
    const { status } = (await response.json()) as { status?: unknown }
    return response.status === 200 && status === 'ok'
  } catch {
    return false
  }
}
