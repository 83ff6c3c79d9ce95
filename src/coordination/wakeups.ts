/** Wakes the callers in this process that wait for a lock of another replica. */
export interface Wakeups {
  /** Registers a waiter. Call it before trying to acquire the lock, so that no message is missed before `sleep`. */
  waiter(key: string): Waiter
  /** Wakes all waiters of the key. */
  wake(key: string): void
}

export interface Waiter {
  /** Resolves at the first message about the key, or after `ms` milliseconds. A waiter can sleep only once. */
  sleep(ms: number): Promise<void>
  /** Removes a waiter that does not need to sleep. */
  cancel(): void
}

export function createWakeups(): Wakeups {
  const waiters = new Map<string, Set<() => void>>()
  return {
    waiter(key) {
      const others = waiters.get(key) ?? new Set()
      waiters.set(key, others)
      let resolveMessage = () => {}
      const message = new Promise<void>(resolve => {
        resolveMessage = resolve
      })
      others.add(resolveMessage)

      function cancel() {
        others.delete(resolveMessage)
        if (others.size === 0 && waiters.get(key) === others) waiters.delete(key)
      }
      return {
        cancel,
        async sleep(ms) {
          const timer = setTimeout(resolveMessage, ms)
          await message
          clearTimeout(timer)
          cancel()
        }
      }
    },
    wake(key) {
      for (const resolve of waiters.get(key) ?? []) resolve()
    }
  }
}
