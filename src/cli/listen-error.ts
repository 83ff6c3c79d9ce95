import { errorCode } from '../config/read-file.js'
import { settings } from '../config/settings.js'
import { messageOf, RunError } from './errors.js'

/** The names under which an operator chooses the port and the host of each listener. */
export const listeners = {
  server: { byPort: '--port', byHost: '--host' },
  metrics: { byPort: '--metrics-port', byHost: settings['metrics.host'].env },
  demo: { byPort: '--demo-port', byHost: '--host' }
} as const

export type Listener = keyof typeof listeners

/** The reason why a listener could not listen. An error of `startServer` says by itself which listener it was. */
export function listenError(error: unknown, listener: Listener = listenerOf(error)): RunError {
  const { address, port } = error as { address?: string; port?: number }
  const explain = explanations[errorCode(error) ?? '']
  const message = explain?.({ address, port, ...listeners[listener] })
  return new RunError(message ?? `The server could not start: ${messageOf(error)}`, { cause: error })
}

function listenerOf(error: unknown): Listener {
  if (!(error instanceof Error && 'listener' in error)) return 'server'
  return error.listener === 'metrics' || error.listener === 'demo' ? error.listener : 'server'
}

interface Place {
  readonly address: string | undefined
  readonly port: number | undefined
  readonly byPort: string
  readonly byHost: string
}

const explanations: Readonly<Record<string, (place: Place) => string>> = {
  EADDRINUSE: ({ port, byPort }) =>
    `Port ${port} is taken by another program; stop that one, or choose another port with ${byPort}.`,
  EACCES: ({ port, byPort }) => `This user may not listen on port ${port}; choose one above 1023 with ${byPort}.`,
  EADDRNOTAVAIL: ({ address, byHost }) =>
    `${address} is no address of this machine; choose another with ${byHost}, or leave it out.`,
  ENOTFOUND: ({ byHost }) => `The host to listen on is not known; choose another with ${byHost}, or leave it out.`
}
