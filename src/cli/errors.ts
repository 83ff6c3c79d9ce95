import { settingOf } from '../config/settings.js'
import { errorCode } from '../support/error-code.js'
import { nearest } from '../support/nearest.js'

// Expected errors of the command line, which are reported in one sentence. Any other error is a bug of this program.

/** The command line is invalid. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The command line is valid, but the command failed, for example because a port is in use. */
export class RunError extends Error {
  override readonly name = 'RunError'
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export const exitCodes = {
  fine: 0,
  /** The command failed, for example because a port is in use or a check failed. */
  failed: 1,
  /** The settings or the command line are invalid. */
  misused: 2
} as const

/** Returns the error for an unknown word. It suggests the known word with the nearest spelling. */
export function unknownWord(kind: 'command' | 'flag', word: string, known: readonly string[]): UsageError {
  // The part after an equals sign may be a secret, so the message does not contain it.
  const [name = ''] = word.split('=', 1)
  const guess = nearest(name, known)
  const help = kind === 'flag' ? '--help all' : '--help'
  return new UsageError(
    `There is no ${kind} ${name}. ${guess ? `Did you mean ${guess}?` : `${help} lists all of them.`}`
  )
}

/** The flags or variables for the port and the host of each listener. */
export const listeners = {
  server: { portOption: '--port', hostOption: '--host' },
  metrics: { portOption: '--metrics-port', hostOption: settingOf('metrics.host').env },
  forwardAuth: { portOption: '--forward-auth-port', hostOption: settingOf('forwardAuth.host').env },
  demo: { portOption: '--demo-port', hostOption: '--host' }
} as const

export type Listener = keyof typeof listeners

/**
 * Explains why the server could not listen on a port. By default, the listener is taken from `error.listener`, which
 * `startServer` sets.
 */
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
    `This user is not allowed to listen on port ${port}. Choose a port above 1023 with ${portOption}.`,
  EADDRNOTAVAIL: ({ address, hostOption }) =>
    `${address} is not an address of this machine. Choose another host with ${hostOption}, or remove ${hostOption}.`,
  ENOTFOUND: ({ hostOption }) =>
    `The host to listen on cannot be resolved. Choose another host with ${hostOption}, or remove ${hostOption}.`
}
