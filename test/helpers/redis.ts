// Helpers for AVA tests that need Redis. The server itself is in a separate module, because programs outside of AVA use
// it too.
import test, { type Implementation } from 'ava'
import { hasRedis } from './redis-server.js'
import { testWhere } from './requirement.js'

export { type RedisServer, startRedis } from './redis-server.js'

const missing = 'redis-server is not installed'

/** Defines a test that needs Redis. */
export function testWithRedis(title: string, implementation: Implementation<[]>): void {
  testWhere(hasRedis, missing, title, implementation)
}

/** Defines a test that needs Redis and measures time. */
export function serialTestWithRedis(title: string, implementation: Implementation<[]>): void {
  testWhere(hasRedis, missing, title, implementation, test.serial)
}
