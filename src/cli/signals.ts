import { messageOf } from './errors.js'
import { exitCodes } from './exit-codes.js'
import type { StopSignal, Terminal } from './terminal.js'

type Signals = Pick<Terminal, 'onSignal' | 'exit' | 'stderr'>

// For one Ctrl-C, a program that npm started gets two SIGINT signals: one from the terminal and one from npm. A second
// SIGINT within this time is therefore ignored.
const duplicateMs = 100

/** Waits for a signal, calls `close`, and returns the exit code. A second signal ends the process at once. */
export function untilStopped(
  terminal: Signals,
  close: () => Promise<void>,
  now: () => number = Date.now
): Promise<number> {
  return new Promise(resolve => {
    let stoppedAt: number | undefined
    const stop = (signal: StopSignal) => () => {
      if (stoppedAt === undefined) {
        stoppedAt = now()
        close().then(() => done(exitCodes.fine), failed)
      } else if (signal === 'SIGTERM' || now() - stoppedAt > duplicateMs) terminal.exit(exitCodes.failed)
    }
    const listeners = (['SIGINT', 'SIGTERM'] as const).map(signal => terminal.onSignal(signal, stop(signal)))
    function done(code: number) {
      for (const remove of listeners) remove()
      // Ends the process even if an open socket or timer keeps it alive. This timer does not delay the end itself.
      setTimeout(() => terminal.exit(code), 1000).unref()
      resolve(code)
    }
    function failed(error: unknown) {
      terminal.stderr.write(`The server did not stop cleanly: ${messageOf(error)}\n`)
      done(exitCodes.failed)
    }
  })
}
