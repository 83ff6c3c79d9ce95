import { settings } from '../config/settings.js'
import { errorCode } from '../support/error-code.js'
import { messageOf, RunError } from './errors.js'

/** The flags or variables for the port and the host of each listener. */
export const listeners = {
  server: { portOption: '--port', hostOption: '--host' },
  metrics: { portOption: '--metrics-port', hostOption: settings['metrics.host'].env },
  forwardAuth: { portOption: '--forward-auth-port', hostOption: settings['forwardAuth.host'].env },
  demo: { portOption: '--demo-port', hostOption: '--host' }
} as const

export type Listener = keyof typeof listeners

/** Explains why the server could not listen on a port. An error of `startServer` has the listener in `error.listener`. */
export function listenError(error: unknown, listener: Listener = listenerOf(error)): RunError {
  const { address, port } = error as { address?: string; port?: number }
  const explain = explanations[errorCode(error) ?? '']
  const message = explain?.({ address, port, ...listeners[listener] })
  return new RunError(message ?? `The server could not start: ${messageOf(error)}`, { cause: error })
}

function listenerOf(error: unknown): Listener {
  if (!(error instanceof Error && 'listener' in error)) return 'server'
  const { listener } = error
  return listener === 'metrics' || listener === 'forwardAuth' || listener === 'demo' ? listener : 'server'
}

interface ListeningAddress {
  readonly address: string | undefined
  readonly port: number | undefined
  readonly portOption: string
  readonly hostOption: string
}

const explanations: Readonly<Record<string, (place: ListeningAddress) => string>> = {
  EADDRINUSE: ({ port, portOption }) =>
    `Port ${port} is in use by another program. Stop that program, or choose another port with ${portOption}.`,
  EACCES: ({ port, portOption }) =>
    `This user may not listen on port ${port}. Choose a port above 1023 with ${portOption}.`,
  EADDRNOTAVAIL: ({ address, hostOption }) =>
    `${address} is not an address of this machine. Choose another host with ${hostOption}, or remove ${hostOption}.`,
  ENOTFOUND: ({ hostOption }) =>
    `The host to listen on cannot be resolved. Choose another host with ${hostOption}, or remove ${hostOption}.`
}
