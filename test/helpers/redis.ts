// Helpers for AVA tests that need Redis. The server itself is in a separate module, because programs outside of AVA use
// it too.
import test from 'ava'
import { hasRedis } from './redis-server.js'
import { testWhere } from './requirement.js'

export { type RedisServer, startRedis } from './redis-server.js'

const missing = 'redis-server is not installed'

/** Defines a test that needs Redis. */
export const testWithRedis = testWhere(hasRedis, missing)

/** Defines a test that needs Redis and measures time. */
export const serialTestWithRedis = testWhere(hasRedis, missing, test.serial)
