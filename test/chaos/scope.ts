/** What was started is ended with it, the latest first: as a test's teardown does it, without a test. */
export interface Scope {
  teardown(end: () => unknown): void
  close(): Promise<void>
}

export function createScope(): Scope {
  const ends: (() => unknown)[] = []
  return {
    teardown(end) {
      ends.push(end)
    },
    async close() {
      for (const end of ends.splice(0).reverse()) await end()
    }
  }
}
