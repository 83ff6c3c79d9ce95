// A process of its own that begins a piece of work and never ends it; for a test to kill.

import { parseRedisAddress } from '#src/config/redis-address.js'
import { createRedisCoordination } from '#src/coordination/redis.js'
import { openRedisClient } from '#src/coordination/redis-client.js'
import { createKeyring } from '#src/sealing/keyring.js'

const [url = '', key = ''] = process.argv.slice(2)
const address = parseRedisAddress(url)
if (!address) throw new Error(`${url} is not understood`)
const log = { info: () => {}, warn: () => {} }
const coordination = createRedisCoordination({
  open: events => openRedisClient(address, events),
  prefix: 'platform-auth:test:',
  sealer: createKeyring(['a secret that replicas share']).sealer('shared results'),
  now: Date.now,
  log
})
await coordination.once(key, () => {
  process.send?.('working')
  return new Promise<never>(() => {})
})
