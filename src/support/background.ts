/** Work that responses do not wait for but shutdown does. */
export interface Background {
  /** Registers the work and returns it, so that the caller can wait for it as well. */
  add<T>(work: Promise<T>): Promise<T>
  /** Resolves when all work has ended, whether it succeeded or failed. */
  ended(): Promise<void>
}

export function createBackground(): Background {
  const pending = new Set<Promise<unknown>>()

  return {
    add(work) {
      pending.add(work)
      const remove = () => pending.delete(work)
      work.then(remove, remove)
      return work
    },
    async ended() {
      // Work may have added more work before it ended.
      while (pending.size > 0) await Promise.allSettled(pending)
    }
  }
}
