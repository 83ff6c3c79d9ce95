const AT_ONCE = 20

/** Limits how many actions run at the same time, because all at once would overload the machine. */
export async function eachOf<T>(items: readonly T[], act: (item: T) => Promise<unknown>): Promise<void> {
  const waiting = [...items]
  const workers = Array.from({ length: AT_ONCE }, async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) await act(item)
  })
  await Promise.all(workers)
}
