// A separate process with a server that shares a Redis. When it has acquired the lease of a session, it sends a message
// and waits for a reply, so that a test can stop the process at this point. The reply is the time at which the process
// continues.
import { once } from 'node:events'
import { systemClock } from '#src/base/clock.js'
import type { Config } from '#src/config/settings.js'
import { createKeyring } from '#src/cookie/keyring.js'
import { serve } from '#src/server/serve.js'
import { createStores } from '#src/sessions/index.js'
import type { openRedisClient } from '#src/sessions/redis/redis-client.js'
import { openRedisAt, PATIENT } from '../helpers/redis-clock.js'

const [url = '', json = '', moment = ''] = process.argv.slice(2)
const given = JSON.parse(json) as Config
const config = { ...given, redis: { ...given.redis, url: given.redis.url && { ...given.redis.url, url } } } as Config
let time = Number(moment)
const now = () => time
const log = { info() {}, warn() {}, error() {} }
const keyring = createKeyring([config.session.secret])
const clock = { ...systemClock, now }

/** Connects to Redis. The reply to the first change of a session, which acquires its lease, waits for the test. */
const open: typeof openRedisClient = async (...parameters) => {
  const client = await openRedisAt(now)(...parameters)
  const { evalsha } = client.commands as { evalsha(...args: readonly unknown[]): Promise<unknown> }
  let hasStalled = false
  const stalling = async (...args: readonly unknown[]) => {
    const reply = await evalsha(...args)
    if (hasStalled || !String(args[2]).includes(':session:') || (reply as readonly unknown[])[0] !== 1) return reply
    hasStalled = true
    const goOn = once(process, 'message')
    process.send?.('leased')
    const [later] = await goOn
    time = Number(later)
    return reply
  }
  Object.assign(client.commands, { evalsha: stalling })
  return client
}

const stores = createStores(config, { keyring, clock, log, open, timing: PATIENT })
const server = await serve(config, { now, stores })
process.send?.({ forwardAuthPort: server.forwardAuthPort })
