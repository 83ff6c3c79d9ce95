import type { Readable, Writable } from 'node:stream'
import type { DestinationStream } from 'pino'
import type { Environment } from '../config/environment.js'
import { RunError } from './errors.js'

/** Everything the command line touches of the process, as an argument, so that a test can be the terminal. */
export interface Terminal {
  readonly args: readonly string[]
  readonly env: Environment
  readonly cwd: string
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
  /** Where the log goes; the standard output unless given. */
  readonly log?: DestinationStream
  /** Returns what takes the listener away again. */
  onSignal(signal: StopSignal | ReloadSignal, listener: () => void): () => void
  /** Errors thrown and promises rejected that nobody caught. Returns what takes the listener away again. */
  onUncaught(listener: (thrown: unknown) => void): () => void
  /** Ends the process now, whatever it is doing. */
  exit(code: number): void
}

export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number }
export type StopSignal = 'SIGINT' | 'SIGTERM'
export type ReloadSignal = 'SIGHUP'

export function processTerminal(): Terminal {
  const { argv, env, stdin, stdout, stderr } = process
  // A reader that went away (`| head`) is no reason for a stack trace.
  for (const stream of [stdout, stderr]) stream.on('error', () => {})
  return {
    args: argv.slice(2),
    env,
    get cwd() {
      return workingDirectory()
    },
    stdin,
    stdout,
    stderr,
    onSignal(signal, listener) {
      process.on(signal, listener)
      return () => process.off(signal, listener)
    },
    onUncaught(listener) {
      // Rejections that nobody caught come here as well.
      process.on('uncaughtException', listener)
      return () => process.off('uncaughtException', listener)
    },
    exit: code => process.exit(code)
  }
}

// Asked for when it is needed: a new secret, say, can be had without one.
function workingDirectory(): string {
  try {
    return process.cwd()
  } catch (cause) {
    throw new RunError('The working directory is not there any more; change to one that is.', { cause })
  }
}
