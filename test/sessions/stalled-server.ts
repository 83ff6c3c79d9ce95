// A separate process with a server that shares a Redis. When it has acquired the lease of a session, it sends a message
// and waits for a reply, so that a test can stop the process at this point. The reply is the time at which the process
// continues.
import { once } from 'node:events'
import { systemClock } from '#src/base/clock.js'
import type { Config } from '#src/config/settings.js'
import { createKeyring } from '#src/cookie/keyring.js'
import { serve } from '#src/server/serve.js'
import { createStores } from '#src/sessions/open-store.js'
import type { SessionStore } from '#src/sessions/store.js'
import { openRedisAt, PATIENT } from '../helpers/redis-clock.js'

const [url = '', json = '', moment = ''] = process.argv.slice(2)
const given = JSON.parse(json) as Config
const config = { ...given, redis: { ...given.redis, url: given.redis.url && { ...given.redis.url, url } } } as Config
let time = Number(moment)
const now = () => time
const log = { info() {}, warn() {}, error() {} }
const keyring = createKeyring([config.session.secret])
const clock = { ...systemClock, now }
const stores = createStores(config, { keyring, clock, log, open: openRedisAt(now), timing: PATIENT })
const { store } = stores

const acquire: SessionStore['acquire'] = async (...parameters) => {
  const answer = await store.acquire(...parameters)
  if (answer.kind !== 'granted') return answer
  const goOn = once(process, 'message')
  process.send?.('leased')
  const [later] = await goOn
  time = Number(later)
  return answer
}

const server = await serve(config, { now, stores: { ...stores, store: { ...store, acquire } } })
process.send?.({ forwardAuthPort: server.forwardAuthPort })
