import { messageOf } from './errors.js'
import { exitCodes } from './exit-codes.js'
import type { StopSignal, Terminal } from './terminal.js'

type Signals = Pick<Terminal, 'env' | 'onSignal' | 'onParentEnded' | 'onTerminalClosed' | 'exit' | 'hangUp' | 'stderr'>

/**
 * `parent_ended`: the server was started by npm or npx, which has ended without passing on a signal.
 * `terminal_closed`: the terminal in which the server was started has been closed.
 */
export type StopReason = StopSignal | 'parent_ended' | 'terminal_closed'

// For one Ctrl-C, a program that npm started gets two SIGINT signals: one from the terminal and one from npm. A second
// SIGINT within this time is therefore ignored.
const duplicateMs = 100

/**
 * Waits for a signal, calls `close`, and returns the exit code. A second signal ends the process at once. npm and npx end at
 * SIGTERM and leave their program running, so a server that they have started also stops when they end.
 */
export function untilStopped(
  terminal: Signals,
  close: (reason: StopReason) => Promise<void>,
  now: () => number = Date.now
): Promise<number> {
  return new Promise(resolve => {
    let stoppedAt: number | undefined
    const stop = (reason: StopReason) => () => {
      if (stoppedAt === undefined) {
        stoppedAt = now()
        close(reason).then(() => {
          if (reason === 'terminal_closed') terminal.hangUp()
          done(exitCodes.fine)
        }, failed)
      } else if (reason === 'SIGTERM' || (reason === 'SIGINT' && now() - stoppedAt > duplicateMs)) {
        terminal.exit(exitCodes.failed)
      }
    }
    const listeners = (['SIGINT', 'SIGTERM'] as const).map(signal => terminal.onSignal(signal, stop(signal)))
    listeners.push(terminal.onTerminalClosed(stop('terminal_closed')))
    const { npm_command, npm_lifecycle_event } = terminal.env
    if (npm_command ?? npm_lifecycle_event) listeners.push(terminal.onParentEnded(stop('parent_ended')))
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
