import type { Logger } from 'pino'
import type { LoadedConfig } from '../config/load.js'
import type { RunningServer } from '../start.js'
import { exitCodes, messageOf } from './errors.js'
import type { ReloadSignal, StopSignal, Terminal } from './terminal.js'

// What a signal does: it is held while the server starts, SIGHUP reloads the secrets, and the others stop the server.

type Signal = StopSignal | ReloadSignal

/**
 * Holds each signal that arrives during the start, and passes it to the listener that is registered later. Otherwise an
 * early signal would end the process in the middle of the start. In a container, where the server is process 1, the kernel
 * would drop an early signal. A second stop signal during the start ends the process at once.
 */
export function holdSignals(terminal: Pick<Terminal, 'onSignal' | 'exit'>) {
  const listeners = new Map<Signal, () => void>()
  const held = new Set<Signal>()

  function receive(signal: Signal) {
    const listener = listeners.get(signal)
    if (listener) listener()
    else if (signal !== 'SIGHUP' && (held.has('SIGINT') || held.has('SIGTERM'))) terminal.exit(exitCodes.failed)
    else held.add(signal)
  }
  const removals = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map(signal =>
    terminal.onSignal(signal, () => receive(signal))
  )

  return {
    onSignal(signal: Signal, listener: () => void) {
      listeners.set(signal, listener)
      if (held.delete(signal)) setImmediate(listener)
      return () => listeners.delete(signal)
    },
    /** Removes all listeners, so that signals have their default effect again. */
    release() {
      for (const remove of removals) remove()
    }
  }
}

/**
 * On SIGHUP, reads the settings again and replaces the secrets. This rotates a secret without a restart and without
 * logging anyone out. If the new settings are invalid, nothing changes. Returns a function that removes the listener.
 */
export function reloadSecretsOnHangup(
  terminal: Pick<Terminal, 'onSignal'>,
  server: Pick<RunningServer, 'replaceSecrets'>,
  load: () => Promise<LoadedConfig>,
  log: Pick<Logger, 'info' | 'error'>
): () => void {
  return terminal.onSignal('SIGHUP', async () => {
    try {
      const { config } = await load()
      server.replaceSecrets(config)
      log.info({ event: 'secrets_reloaded', previous: config.session.previousSecrets.length }, 'secrets read again')
    } catch (error) {
      log.error({ event: 'reload_failed' }, `The secrets were not changed: ${messageOf(error)}`)
    }
  })
}

/**
 * `parent_ended`: the server was started by npm or npx, which has ended without passing on a signal.
 * `terminal_closed`: the terminal in which the server was started has been closed.
 */
type StopReason = StopSignal | 'parent_ended' | 'terminal_closed'

// For one Ctrl-C, a program that npm started gets two SIGINT signals: one from the terminal and one from npm. A second
// SIGINT within this time is therefore ignored.
const duplicateMs = 100

/**
 * Waits for a signal, calls `close`, and returns the exit code. A second signal ends the process at once. npm and npx end at
 * SIGTERM and leave their program running, so a server that they have started also stops when they end.
 */
export function untilStopped(
  terminal: Pick<Terminal, 'env' | 'onSignal' | 'onParentEnded' | 'onTerminalClosed' | 'exit' | 'hangUp' | 'stderr'>,
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
