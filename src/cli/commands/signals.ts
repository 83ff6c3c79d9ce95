import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import type { LoadedConfig } from '../../config/load.js'
import { type Config, type SettingKey, settingIn, settingKeys } from '../../config/settings.js'
import type { RunningServer } from '../../server/start-server.js'
import { exitCodes, messageOf } from '../terminal/expected-errors.js'
import type { Signal, StopSignal, Terminal } from '../terminal/terminal.js'

// Handles signals. While the server starts, signals are held back. After the start, SIGHUP reloads the secrets, and the other
// signals stop the server.

// For one Ctrl-C, a program that npm started gets two SIGINT signals: one from the terminal and one from npm. A second
// SIGINT within this time is therefore ignored.
const duplicateMs = 100

/**
 * Returns a function to call for each signal to stop. It returns true if the person at the terminal wants the process to end
 * immediately, with a second Ctrl-C. No other signal shortens a shutdown: hosts and supervisors send SIGTERM more than once, and
 * send SIGKILL when their time is over.
 */
function createHurry(now: () => number): (reason: StopReason) => boolean {
  let interruptedAt: number | undefined
  return function isHurry(reason) {
    if (reason !== 'SIGINT') return false
    interruptedAt ??= now()
    return now() - interruptedAt > duplicateMs
  }
}

/**
 * Holds each signal that arrives during the start, and passes it to the listener that is registered later. Otherwise an
 * early signal would end the process in the middle of the start. In a container, where the server is process 1, the
 * kernel would even ignore an early signal.
 */
export function holdSignals(terminal: Pick<Terminal, 'onSignal' | 'exit'>, now: () => number = Date.now) {
  const listeners = new Map<Signal, () => void>()
  const held = new Set<Signal>()
  const isHurry = createHurry(now)

  function receive(signal: Signal) {
    const listener = listeners.get(signal)
    if (listener) listener()
    else if (signal !== 'SIGHUP' && isHurry(signal)) terminal.exit(exitCodes.failed)
    else held.add(signal)
  }
  const removals = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map(signal =>
    terminal.onSignal(signal, () => receive(signal))
  )

  return {
    onSignal(signal: Signal, listener: () => void) {
      listeners.set(signal, listener)
      // The listener is called later, because it may use a variable that the caller assigns only after this call.
      if (held.delete(signal)) setImmediate(listener)
      return () => listeners.delete(signal)
    },
    /** Removes all listeners, so that signals have their default effect again. */
    release() {
      for (const remove of removals) remove()
    }
  }
}

/** The settings that `replaceSecrets` replaces. All others need a restart. */
const reloaded: readonly SettingKey[] = [
  'session.secret',
  'session.previousSecrets',
  'platform.clientSecret',
  'platform.clientKey',
  'platform.clientKeyId'
]

/**
 * On SIGHUP, reads the settings again and replaces the secrets. This rotates a secret without a restart and without
 * logging anyone out. If the new settings are invalid, nothing changes. Returns a function that removes the listener.
 * @param started the settings with which the server was started
 */
export function reloadSecretsOnHangup(
  terminal: Pick<Terminal, 'onSignal'>,
  server: Pick<RunningServer, 'replaceSecrets' | 'reloadFailed'>,
  started: Config,
  load: () => Promise<LoadedConfig>,
  log: Pick<Logger, 'info' | 'warn' | 'error'>
): () => void {
  return terminal.onSignal('SIGHUP', async () => {
    try {
      const { config } = await load()
      server.replaceSecrets(config)
      log.info({ event: 'secrets_reloaded', previous: config.session.previousSecrets.length }, 'secrets read again')
      const hasChanged = (key: SettingKey) => !isDeepStrictEqual(settingIn(started, key), settingIn(config, key))
      const settings = settingKeys.filter(key => !reloaded.includes(key) && hasChanged(key))
      if (settings.length > 0) {
        const message =
          'Other settings have changed, too. They take effect only after a restart, because SIGHUP replaces only secrets.'
        log.warn({ event: 'restart_required', settings }, message)
      }
    } catch (error) {
      server.reloadFailed()
      log.error({ event: 'reload_failed' }, `The secrets were not changed: ${messageOf(error)}`)
    }
  })
}

/**
 * `parent_ended`: the server was started by npm or npx, which has ended without passing on a signal.
 * `terminal_closed`: the terminal in which the server was started has been closed.
 */
type StopReason = StopSignal | 'parent_ended' | 'terminal_closed'

/**
 * Waits for a signal, calls `close`, and returns the exit code. A second Ctrl-C ends the process immediately. npm and
 * npx exit at SIGTERM without stopping their program, so a server that they have started stops when they have exited.
 */
export function untilStopped(
  terminal: Pick<Terminal, 'env' | 'onSignal' | 'onParentEnded' | 'onTerminalClosed' | 'exit' | 'hangUp' | 'stderr'>,
  close: (reason: StopReason) => Promise<void>,
  now: () => number = Date.now
): Promise<number> {
  return new Promise(resolve => {
    let isStopping = false
    const isHurry = createHurry(now)
    const stop = (reason: StopReason) => () => {
      if (isHurry(reason)) terminal.exit(exitCodes.failed)
      if (!isStopping) {
        isStopping = true
        close(reason).then(() => {
          if (reason === 'terminal_closed') terminal.hangUp()
          done(exitCodes.fine)
        }, failed)
      }
    }
    const listeners = (['SIGINT', 'SIGTERM'] as const).map(signal => terminal.onSignal(signal, stop(signal)))
    listeners.push(terminal.onTerminalClosed(stop('terminal_closed')))
    const { npm_command, npm_lifecycle_event } = terminal.env
    if (npm_command ?? npm_lifecycle_event) listeners.push(terminal.onParentEnded(stop('parent_ended')))
    function done(code: number) {
      for (const remove of listeners) remove()
      // Ends the process even if an open socket or another timer keeps it alive. `unref` lets the process end earlier.
      setTimeout(() => terminal.exit(code), 1000).unref()
      resolve(code)
    }
    function failed(error: unknown) {
      terminal.stderr.write(`The server did not stop cleanly: ${messageOf(error)}\n`)
      done(exitCodes.failed)
    }
  })
}
