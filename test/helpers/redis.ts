// For tests that need Redis. Apart from the server itself, which is also of use outside of AVA.
import type { Implementation } from 'ava'
import { hasRedis } from './redis-server.js'
import { testWhere } from './requirement.js'

export { type RedisServer, startRedis } from './redis-server.js'

/** A test that needs Redis. */
export function testWithRedis(title: string, implementation: Implementation<[]>): void {
  testWhere(hasRedis, 'redis-server is not installed', title, implementation)
}
