/** Those in this process who wait for news about a key. */
export interface Wakeups {
  /** From this moment on news about `key` is not missed, though nobody sleeps yet. */
  sleeper(key: string): Sleeper
  wake(key: string): void
}

export interface Sleeper {
  /** Resolves at the first news, or after `ms` without any; then this sleeper is used up. */
  sleep(ms: number): Promise<void>
  /** For one that need not sleep after all. */
  leave(): void
}

export function createWakeups(): Wakeups {
  const sleepers = new Map<string, Set<() => void>>()
  return {
    sleeper(key) {
      const others = sleepers.get(key) ?? new Set()
      sleepers.set(key, others)
      let resolveNews = () => {}
      const news = new Promise<void>(resolve => {
        resolveNews = resolve
      })
      others.add(resolveNews)

      function leave() {
        others.delete(resolveNews)
        if (others.size === 0 && sleepers.get(key) === others) sleepers.delete(key)
      }
      return {
        leave,
        async sleep(ms) {
          const timer = setTimeout(resolveNews, ms)
          await news
          clearTimeout(timer)
          leave()
        }
      }
    },
    wake(key) {
      for (const resolve of sleepers.get(key) ?? []) resolve()
    }
  }
}
