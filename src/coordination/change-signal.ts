/** Lets callers wait until something changes. */
export interface ChangeSignal {
  /** Wakes all waiting callers. */
  notify(): void
  /** Resolves at the next call of `notify`, or after `ms` milliseconds. */
  next(ms: number): Promise<void>
}

export function createChangeSignal(): ChangeSignal {
  const listeners = new Set<() => void>()
  return {
    notify() {
      for (const listener of listeners) listener()
    },
    next(ms) {
      return new Promise(resolve => {
        const timer = setTimeout(proceed, ms)
        function proceed() {
          clearTimeout(timer)
          listeners.delete(proceed)
          resolve()
        }
        listeners.add(proceed)
      })
    }
  }
}
