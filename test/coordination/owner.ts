// A separate process that starts a piece of work and never finishes it. A test kills this process. If `reached` is given, the
// process saves it as a checkpoint first.
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
