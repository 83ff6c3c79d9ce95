// A process of its own that begins a piece of work and never ends it; for a test to kill.
import { startReplica } from './replicas.js'

const [url = '', key = ''] = process.argv.slice(2)
const replica = await startReplica({ teardown: () => {} }, url)
await replica.once(key, () => {
  process.send?.('working')
  return new Promise<never>(() => {})
})
