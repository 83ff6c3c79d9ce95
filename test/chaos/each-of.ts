const AT_ONCE = 20

/** Not all at the same time, which would be a storm of its own. */
export async function eachOf<T>(items: readonly T[], act: (item: T) => Promise<unknown>): Promise<void> {
  const waiting = [...items]
  const workers = Array.from({ length: AT_ONCE }, async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) await act(item)
  })
  await Promise.all(workers)
}
