/** Work that no answer waits for, but the end of the process does. */
export interface Background {
  /** Gives the same work back, to wait for or not. */
  add<T>(work: Promise<T>): Promise<T>
  /** Resolves when nothing of it is under way, whatever it came to. */
  ended(): Promise<void>
}

export function createBackground(): Background {
  const underWay = new Set<Promise<unknown>>()

  return {
    add(work) {
      underWay.add(work)
      const remove = () => underWay.delete(work)
      work.then(remove, remove)
      return work
    },
    async ended() {
      // One may have begun another.
      while (underWay.size > 0) await Promise.allSettled(underWay)
    }
  }
}
