// A separate process with a server that shares a Redis. After each check of a kept result it sends a message and waits for an
// answer, so that a test can stop the process at this point.
import { once } from 'node:events'
import type { Config } from '#src/config/settings.js'
import type { Coordination } from '#src/coordination/coordination.js'
import { serve } from '#src/server.js'
import { startReplica } from './replicas.js'
import { SHORT_LEASE } from './work.js'

const [url = '', config = '', moment = ''] = process.argv.slice(2)
const now = () => Number(moment)
const coordination = await startReplica({ teardown: () => {} }, url, { now, timing: SHORT_LEASE })

const update: Coordination['update'] = async (key, change) => {
  const kept = await coordination.update(key, change)
  const goOn = once(process, 'message')
  process.send?.('checked')
  await goOn
  return kept
}

const server = await serve(JSON.parse(config) as Config, { now, coordination: { ...coordination, update } })
process.send?.({ forwardAuthPort: server.forwardAuthPort })
