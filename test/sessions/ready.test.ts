// A process that starts while Redis is away does not know which sessions were logged out. A load balancer should not send it
// requests yet, but not wait for ever either.
import { eventually } from '../helpers/eventually.js'
import { testWithRedis as test } from '../helpers/redis.js'
import { IMPATIENT, openRedisAt } from '../helpers/redis-clock.js'
import { startDeployment } from './deployment.js'

const starting = [503, 'starting']
const ready = [200, 'ready']

test('/readyz is 503 until the first connection to Redis, and stays 200 in a later outage', async t => {
  const { redis, clock, start } = await startDeployment(t)
  await redis.kill()
  const { browser } = await start({}, { open: openRedisAt(clock.now), timing: IMPATIENT })
  const ask = async () => {
    const response = await browser.get('/readyz')
    return [response.statusCode, response.json<{ status: string }>().status]
  }
  t.deepEqual(await ask(), starting)
  t.is((await browser.get('/healthz')).statusCode, 200)
  clock.advanceSeconds(29.9)
  t.deepEqual(await ask(), starting)
  await redis.restart()
  await eventually(async () => (await ask())[0] === 200)
  await redis.kill()
  await eventually(async () => (await browser.get('/readyz')).json<{ redis: string }>().redis === 'down')
  t.deepEqual(await ask(), ready)
})

test('/readyz is 200 after 30 seconds without Redis', async t => {
  const { redis, clock, start } = await startDeployment(t)
  await redis.kill()
  const { browser } = await start({}, { open: openRedisAt(clock.now), timing: IMPATIENT })
  t.is((await browser.get('/readyz')).statusCode, 503)
  clock.advanceSeconds(30)
  t.is((await browser.get('/readyz')).statusCode, 200)
})
