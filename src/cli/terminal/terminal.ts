import { readFileSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { isatty } from 'node:tty'
import { Help } from 'commander'
import type { DestinationStream } from 'pino'
import { errorCode } from '../../base/error-code.js'
import type { Environment } from '../../config/sources/dot-env.js'
import { withFlagsOfContainer } from './container.js'
import { RunError } from './expected-errors.js'

/**
 * The streams, signals and variables of the process that the command line uses. They are passed as an argument, so that
 * tests can replace them.
 */
export interface Terminal {
  readonly args: readonly string[]
  readonly env: Environment
  readonly cwd: string
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
  /** The destination of the log; stdout by default. */
  readonly log?: DestinationStream
  /**
   * Returns a function that removes the listener. The SIGHUP of a closed terminal is not passed on, because it must not be
   * confused with the SIGHUP that an operator sends.
   */
  onSignal(signal: Signal, listener: () => void): () => void
  /**
   * Calls the listener when the process that started this one has ended. Returns a function that removes the listener.
   */
  onParentEnded(listener: () => void): () => void
  /**
   * Calls the listener when the terminal in which this process was started has been closed. Returns a function that removes
   * the listener.
   */
  onTerminalClosed(listener: () => void): () => void
  /** Listens for uncaught errors and unhandled rejections. Returns a function that removes the listener. */
  onUncaught(listener: (thrown: unknown) => void): () => void
  /** Ends the process immediately. */
  exit(code: number): void
  /**
   * Ends the process with the default action of SIGHUP, because `process.exit()` aborts if the terminal no longer
   * exists.
   */
  hangUp(): void
}

export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number }
export type StopSignal = 'SIGINT' | 'SIGTERM'
export type Signal = StopSignal | 'SIGHUP'

const PARENT_CHECK_MS = 500

/** @param onListening called when the process listens for a signal, so that an earlier listener can be removed without a gap */
export function processTerminal(onListening: (signal: Signal) => unknown = () => {}): Terminal {
  const { argv, env, stdin, stdout, stderr } = process
  // The parent may end while the server starts, so the id of the parent is read first.
  const hasParentEnded = watchParents()
  // With nohup, no stream is a terminal, so the process keeps running when the terminal is closed.
  const terminals = [0, 1, 2].filter(isatty)
  const isTerminalClosed = () => terminals.length > 0 && !terminals.some(isatty)
  // A reader such as `head` may close the pipe early. Without a listener, the error would end the process with a stack
  // trace.
  for (const stream of [stdout, stderr]) stream.on('error', () => {})
  return {
    args: withFlagsOfContainer(argv.slice(2)),
    env,
    // It is read only when it is needed, because some commands, such as `secret`, work without one.
    get cwd() {
      return process.cwd()
    },
    stdin,
    stdout,
    stderr,
    onSignal(signal, listener) {
      const run = signal === 'SIGHUP' ? () => void (isTerminalClosed() || listener()) : listener
      process.on(signal, run)
      onListening(signal)
      return () => process.off(signal, run)
    },
    onParentEnded(listener) {
      const timer = setInterval(() => hasParentEnded() && listener(), PARENT_CHECK_MS).unref()
      return () => clearInterval(timer)
    },
    onTerminalClosed(listener) {
      const run = () => void (isTerminalClosed() && listener())
      process.on('SIGHUP', run)
      // The terminal may have been closed during the start.
      setImmediate(run)
      return () => process.off('SIGHUP', run)
    },
    onUncaught(listener) {
      // Node also reports unhandled rejections through this event.
      process.on('uncaughtException', listener)
      return () => process.off('uncaughtException', listener)
    },
    exit: code => process.exit(code),
    hangUp() {
      process.removeAllListeners('SIGHUP')
      process.kill(process.pid, 'SIGHUP')
    }
  }
}

// Wraps lines for a terminal. Output to a pipe is not wrapped, so that a script gets one message per line.

/** Returns the width of the terminal, or undefined if the output is not a terminal. */
export function columnsOf({ isTTY, columns }: Output): number | undefined {
  return isTTY === true ? (columns ?? 80) : undefined
}

// By default, Commander does not wrap text if there are fewer than 40 columns. This helper wraps at any width.
const helper = Object.assign(new Help(), { minWidthToWrap: 1 })

/**
 * Breaks a string between words. A word that is longer than a line, such as a URL, stays whole.
 * @param indent the number of spaces before each line except the first, which the caller has already started
 */
export function wrap(text: string, columns: number | undefined, indent = 0): string {
  if (columns === undefined) return text
  return helper.boxWrap(text, columns - indent).replaceAll('\n', `\n${' '.repeat(indent)}`)
}

/** Wraps each line of a message. Continuation lines are indented by two more columns than the first line. */
export function wrapLines(message: string, columns: number | undefined): string {
  return message
    .split('\n')
    .map(line => {
      const [space = ''] = /^ */.exec(line) ?? []
      return `${space}${wrap(line.trimStart(), columns, space.length + 2)}`
    })
    .join('\n')
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

const SHELL = /^-?(sh|ash|dash|bash|zsh|ksh|busybox)$/

/**
 * Returns a function that tells if the process that started this one has ended. npm starts its programs through a
 * shell. If npm is killed, this shell survives, so the parent of the shell is watched, too. This works only on Linux,
 * where a process can read the parent of another process.
 */
function watchParents(): () => boolean {
  const { ppid } = process
  const parent = lookUp(ppid)
  const watched = parent && SHELL.test(parent.name) ? parent.ppid : undefined
  // When its parent exits, a process gets a different parent, so the id of its parent changes.
  return () => process.ppid !== ppid || (watched !== undefined && lookUp(ppid)?.ppid !== watched)
}

/** Returns the name and the parent of a process, or undefined if they cannot be read from /proc (proc_pid_stat(5)). */
function lookUp(pid: number): { readonly name: string; readonly ppid: number } | undefined {
  try {
    const [, name = '', ppid] = /^\d+ \((.*)\) \S (\d+) /s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? []
    return { name, ppid: Number(ppid) }
  } catch {
    return undefined
  }
}

/** Records the first write error of the output, so that `flush` can report it. */
export function watchOutput(output: Output): { flush(): Promise<void> } {
  let failure: Error | undefined
  output.on('error', error => {
    // A reader such as `head` may close the pipe early. That is not a failure.
    if (errorCode(error) !== 'EPIPE') failure ??= error
  })
  return {
    /** Waits until all output is written. Throws RunError if some of it was lost, for example on a full disk. */
    async flush() {
      await new Promise<void>(resolve => output.write('', () => resolve()))
      if (failure === undefined) return
      throw new RunError(`The output could not be written: ${errorCode(failure) ?? failure.message}.`, {
        cause: failure
      })
    }
  }
}
