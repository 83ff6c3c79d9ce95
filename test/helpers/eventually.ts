import { setTimeout as pause } from 'node:timers/promises'

const LIMIT_MS = 60_000

/** Waits until `holds` returns true, for background work that sends no event. Rejects after a minute. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + LIMIT_MS
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`This was not true within ${LIMIT_MS} ms: ${holds}`)
    await pause(5)
  }
}
