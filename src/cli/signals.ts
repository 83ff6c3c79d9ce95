import { messageOf } from './errors.js'
import { exitCodes } from './exit-codes.js'
import type { StopSignal, Terminal } from './terminal.js'

type Signals = Pick<Terminal, 'onSignal' | 'exit' | 'stderr'>

// npm forwards a Ctrl-C that the program has already received from the terminal. A second SIGINT within this time is
// therefore ignored.
const duplicateMs = 100

/** Waits for a signal, then for `close`, and returns the exit code. A second signal ends the process at once. */
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
      // Ends the process even if something still keeps it alive. The timer itself does not delay the end.
      setTimeout(() => terminal.exit(code), 1000).unref()
      resolve(code)
    }
    function failed(error: unknown) {
      terminal.stderr.write(`The server did not stop cleanly: ${messageOf(error)}\n`)
      done(exitCodes.failed)
    }
  })
}
