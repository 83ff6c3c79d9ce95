/** Wakes the callers in this process that wait until another replica releases a lock. */
export interface Wakeups {
  /**
   * Registers a waiter for the lock of `key`. Call this before trying to acquire the lock. A message that arrives
   * between the attempt and `sleep` is then not missed.
   */
  waiter(key: string): Waiter
  /** Wakes all waiters for the lock of `key`. Call this when a message says that the lock was released. */
  wake(key: string): void
}

export interface Waiter {
  /** Resolves when `wake` is called, or after `ms` milliseconds. A waiter can sleep only once. */
  sleep(ms: number): Promise<void>
  /** Removes the waiter. Call this instead of `sleep` if the caller does not need to wait. */
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
