// A separate process that acquires a lock, starts the work and never finishes it. A test kills this process. Its arguments are
// the address of Redis, the key of the work, and optionally a value (`reached`), which it first saves as a checkpoint.
import { startReplica } from './replicas.js'
import { KEEP_MS } from './work.js'

const [url = '', key = '', reached] = process.argv.slice(2)
// The lease of the lock is short, so that the test does not have to wait long after the kill.
const replica = await startReplica({ teardown: () => {} }, url, { timing: { leaseMs: 1500 } })
await replica.once(key, async run => {
  if (reached !== undefined) await run.checkpoint({ value: reached, keepMs: KEEP_MS })
  process.send?.('working')
  return new Promise<never>(() => {})
})
