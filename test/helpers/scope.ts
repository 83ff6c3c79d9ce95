// The teardown of an AVA test, for programs that use the helpers outside of AVA.

export interface Teardown {
  teardown(end: () => unknown): void
}

/** Calls `work`, and afterwards the functions that it has registered, the latest first. */
export async function inScope<T>(work: (scope: Teardown) => Promise<T>): Promise<T> {
  const ends: (() => unknown)[] = []
  try {
    return await work({ teardown: end => void ends.push(end) })
  } finally {
    for (const end of ends.reverse()) await end()
  }
}
