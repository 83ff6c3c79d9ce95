import { errorCode, isError } from '../../base/error-code.js'

// Expected errors of the command line, which are reported in one sentence. Any other error is a bug of this server.

/** The command line is invalid. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The command line is valid, but the command failed, for example because a port is in use. */
export class RunError extends Error {
  override readonly name = 'RunError'
}

export function messageOf(error: unknown): string {
  return isError(error) ? error.message : String(error)
}

export const exitCodes = {
  fine: 0,
  /** The command failed, for example because a port is in use or a check failed. */
  failed: 1,
  /** The settings or the command line are invalid. */
  misused: 2
} as const

/** The flags for the port and the host of each listener. */
export const listeners = {
  server: { portOption: '--port', hostOption: '--host' },
  metrics: { portOption: '--metrics-address', hostOption: '--metrics-address' },
  demo: { portOption: '--port', hostOption: '--host' },
  forwardAuth: { portOption: '--forward-auth-address', hostOption: '--forward-auth-address' }
} as const

export type Listener = keyof typeof listeners

/** Returns the error to report if the server could not listen on a port. `startServer` sets `error.listener`. */
export function listenError(error: unknown): RunError {
  const { listener = 'server' } = error as { readonly listener?: Listener }
  return new RunError(explainListenError(error, listener).join(' '), { cause: error })
}

/** Explains why a port could not be opened. An unusual error has no advice. */
export function explainListenError(error: unknown, listener: Listener): readonly [problem: string, advice?: string] {
  const { address, port } = error as { readonly address?: string; readonly port?: number }
  const { portOption, hostOption } = listeners[listener]
  const otherHost = `Choose a different host with ${hostOption}, or remove ${hostOption}.`
  const refused = 'because this user may only use ports above 1023, or because the system reserves it (Hyper-V does)'
  const explanations: Readonly<Record<string, readonly [problem: string, advice: string]>> = {
    EADDRINUSE: [
      `Port ${port} is in use by another program.`,
      `Stop that program, or choose a different port with ${portOption}.`
    ],
    EACCES: [`Port ${port} is refused, ${refused}.`, `Choose a different port above 1023 with ${portOption}.`],
    EADDRNOTAVAIL: [`${address} is not an address of this machine.`, otherHost],
    ENOTFOUND: ['The host to listen on cannot be resolved.', otherHost]
  }
  return explanations[errorCode(error) ?? ''] ?? [`The server could not start: ${messageOf(error)}`]
}
