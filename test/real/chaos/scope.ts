/**
 * Runs the registered functions on close(), the latest first. It replaces the teardown of an AVA test outside of AVA.
 */
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
