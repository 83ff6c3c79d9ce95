import { exitCodes } from './exit-codes.js'
import type { ReloadSignal, StopSignal, Terminal } from './terminal.js'

type Signal = StopSignal | ReloadSignal

export interface HeldSignals extends Pick<Terminal, 'onSignal'> {
  /** From now on the system decides again what a signal does. */
  release(): void
}

/**
 * Takes the signals from the moment a start begins, and hands those that came meanwhile to whoever listens at last.
 * Otherwise one that comes too early ends the process in the middle of things, or, as process 1 of a container, where
 * the kernel drops what nobody listens for, is never heard. A second one to stop is obeyed at once.
 */
export function holdSignals(terminal: Pick<Terminal, 'onSignal' | 'exit'>): HeldSignals {
  const listeners = new Map<Signal, () => void>()
  const missed = new Set<Signal>()

  function take(signal: Signal) {
    const listener = listeners.get(signal)
    if (listener) listener()
    else if (signal !== 'SIGHUP' && (missed.has('SIGINT') || missed.has('SIGTERM'))) terminal.exit(exitCodes.failed)
    else missed.add(signal)
  }
  const removals = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map(signal =>
    terminal.onSignal(signal, () => take(signal))
  )

  return {
    onSignal(signal, listener) {
      listeners.set(signal, listener)
      if (missed.delete(signal)) setImmediate(listener)
      return () => listeners.delete(signal)
    },
    release() {
      for (const remove of removals) remove()
    }
  }
}
