// A separate process with a server that shares a Redis. When it gets the lock of a session, it sends a message and waits for
// an answer, so that a test can stop the process at this point. The answer is the time at which the process goes on.
import { once } from 'node:events'
import type { Config } from '#src/config/settings.js'
import { serve } from '#src/server.js'
import type { SessionStore } from '#src/store/session-store.js'
import { startReplica } from './replicas.js'

const [url = '', config = '', moment = ''] = process.argv.slice(2)
let time = Number(moment)
const now = () => time
const store = await startReplica({ teardown: () => {} }, url, { now })

const take: SessionStore['take'] = async (session, loss) => {
  const answer = await store.take(session, loss)
  if (answer.kind !== 'mine') return answer
  const goOn = once(process, 'message')
  process.send?.('locked')
  const [later] = await goOn
  time = Number(later)
  return answer
}

const server = await serve(JSON.parse(config) as Config, { now, store: { ...store, take } })
process.send?.({ forwardAuthPort: server.forwardAuthPort })
