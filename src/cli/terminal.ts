import type { Readable, Writable } from 'node:stream'
import type { DestinationStream } from 'pino'
import type { Environment } from '../config/environment.js'
import { RunError } from './errors.js'

/** The parts of the process that the command line uses. They are passed as an argument, so that tests can replace them. */
export interface Terminal {
  readonly args: readonly string[]
  readonly env: Environment
  readonly cwd: string
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
  /** The destination of the log; stdout by default. */
  readonly log?: DestinationStream
  /** Returns a function that removes the listener. */
  onSignal(signal: StopSignal | ReloadSignal, listener: () => void): () => void
  /**
   * Calls the listener when the process that started this one has ended. Returns a function that removes the listener.
   */
  onParentEnded(listener: () => void): () => void
  /** Listens for uncaught errors and unhandled rejections. Returns a function that removes the listener. */
  onUncaught(listener: (thrown: unknown) => void): () => void
  /** Ends the process at once. */
  exit(code: number): void
}

export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number }
export type StopSignal = 'SIGINT' | 'SIGTERM'
export type ReloadSignal = 'SIGHUP'

const PARENT_CHECK_MS = 500

export function processTerminal(): Terminal {
  // The parent may end while the server starts, so its id is read first.
  const { argv, env, stdin, stdout, stderr, ppid } = process
  // A reader such as `head` may close the pipe early. Without a listener, the error would end the process with a stack trace.
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
    onParentEnded(listener) {
      // The system gives a process without a parent to another process, so the id of the parent changes.
      const timer = setInterval(() => process.ppid !== ppid && listener(), PARENT_CHECK_MS).unref()
      return () => clearInterval(timer)
    },
    onUncaught(listener) {
      // Node also reports unhandled rejections through this event.
      process.on('uncaughtException', listener)
      return () => process.off('uncaughtException', listener)
    },
    exit: code => process.exit(code)
  }
}

// The working directory is read only when it is needed, because some commands, such as `secret`, work without one.
function workingDirectory(): string {
  try {
    return process.cwd()
  } catch (cause) {
    throw new RunError('The working directory no longer exists. Change to another one.', { cause })
  }
}
