// A process of its own that begins a piece of work and never ends it; for a test to kill. It leaves `reached`, if given.
import { startReplica } from './replicas.js'
import { KEEP_MS } from './work.js'

const [url = '', key = '', reached] = process.argv.slice(2)
const replica = await startReplica({ teardown: () => {} }, url)
await replica.once(key, async run => {
  if (reached !== undefined) await run.leave({ value: reached, keepMs: KEEP_MS })
  process.send?.('working')
  return new Promise<never>(() => {})
})
