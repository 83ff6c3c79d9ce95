/** Waits for what happens in the background and has no answer to wait for; fails after a generous while. */
export async function eventually(holds: () => boolean, withinMs = 10_000): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`This did not come about within ${withinMs} ms: ${holds}`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}
