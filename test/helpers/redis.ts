// For tests that need Redis. Apart from the server itself, which is also of use outside of AVA.
import test, { type Implementation } from 'ava'
import { hasRedis } from './redis-server.js'

export { type RedisServer, startRedis } from './redis-server.js'

/** A test that needs Redis: where none is installed it is listed as skipped, but in CI it fails. */
export function testWithRedis(title: string, implementation: Implementation<[]>): void {
  if (hasRedis) test(title, implementation)
  else if (process.env.CI === 'true') test(title, t => t.fail('redis-server is not installed'))
  else test.skip(`${title} (redis-server is not installed)`, implementation)
}
