// A separate process that begins a piece of work and never finishes it, so that a test can kill it. It saves `reached` as a
// checkpoint, if given.
import { startReplica } from './replicas.js'
import { KEEP_MS } from './work.js'

const [url = '', key = '', reached] = process.argv.slice(2)
// The lease is short, so that the test does not have to wait long after the kill.
const replica = await startReplica({ teardown: () => {} }, url, { timing: { leaseMs: 1500 } })
await replica.once(key, async run => {
  if (reached !== undefined) await run.checkpoint({ value: reached, keepMs: KEEP_MS })
  process.send?.('working')
  return new Promise<never>(() => {})
})
