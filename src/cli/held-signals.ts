import { exitCodes } from './exit-codes.js'
import type { ReloadSignal, StopSignal, Terminal } from './terminal.js'

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
