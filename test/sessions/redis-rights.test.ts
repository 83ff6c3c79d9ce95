// The ACL line in docs/run/redis.md allows everything that servers need, and nothing else.
import { Redis } from 'ioredis'
import { serverCommands } from '#src/cli/check/redis-inspection.js'
import { startRedis, testWithRedis as test } from '../helpers/redis.js'
import { startRedisCluster } from '../helpers/redis-topologies.js'
import { connected, listed, startPair, startReplicas, useEverything } from './replicas.js'
import { clusterRights, documentedRights, documentedUser } from './rights.js'

const [, name = '', , password = ''] = documentedUser

function urlFor(url: string): string {
  return url.replace('//', `//${name}:${password.slice(1)}@`)
}

test('with the documented ACL line, servers use every kind of key and message', async t => {
  const redis = await startRedis(t, ['--user', ...documentedUser.slice(1)])
  const [one, two] = await startReplicas(t, urlFor(redis.url), { settings: listed })
  await connected(one, two)
  await useEverything(one, two)
  // A busy machine can need longer for its first connection than a server waits without a log line.
  const lines = [...one.logs.entries, ...two.logs.entries].filter(({ error_code }) => error_code !== 'no_connection')
  t.deepEqual(
    lines.filter(({ event }) => event === 'redis_unavailable'),
    []
  )
})

test('with the documented ACL line, other keys, other channels and other commands are refused', async t => {
  const redis = await startRedis(t, ['--user', ...documentedUser.slice(1)])
  const client = new Redis(urlFor(redis.url))
  t.teardown(() => client.disconnect())
  await client.hset('platform-auth:key', 'e', 'value')
  await client.publish('platform-auth:channel', '')
  const refused: Readonly<Record<string, () => Promise<unknown>>> = {
    'another key': () => client.hset('another', 'e', 'value'),
    'another key in a script': () => client.eval("return redis.call('HGET', KEYS[1], 'e')", 1, 'another'),
    'a key that a script does not declare': () => client.eval("return redis.call('HSET', 'another', 'e', 1)", 0),
    'another channel': () => client.publish('another', ''),
    'listening to another channel': () => client.subscribe('another'),
    FLUSHALL: () => client.flushall(),
    KEYS: () => client.keys('*'),
    CONFIG: () => client.config('GET', '*'),
    'FLUSHALL in a script': () => client.eval("return redis.call('FLUSHALL')", 0)
  }
  for (const [what, act] of Object.entries(refused))
    await t.throwsAsync(act, { message: /NOPERM|The user executing the script/ }, what)
})

test('in a cluster, all scripts work with the documented rights, and all nodes store sessions', async t => {
  const cluster = await startRedisCluster(t)
  for (const { admin } of cluster.nodes)
    await admin.call('ACL', 'SETUSER', ...documentedUser.slice(1), ...clusterRights)
  const [one, two] = await startReplicas(t, urlFor(cluster.url), { settings: listed })
  await connected(one, two)
  await useEverything(one, two)
  for (const { admin } of cluster.nodes) t.true((await admin.dbsize()) > 0)
  t.deepEqual([...one.logs.entries, ...two.logs.entries], [])
})

test('none of the documented commands is superfluous', async t => {
  const { redis, one, two } = await startPair(t, { settings: listed })
  await connected(one, two)
  await useEverything(one, two)
  const stats = await redis.admin.info('commandstats')
  const used = new Set([...stats.matchAll(/cmdstat_(\w+):/g)].map(([, command]) => `+${command}`))
  // `check` tests these commands, whether this test uses them or not. The statistics do not name subcommands.
  const tested = new Set(['+client|setname', ...serverCommands('').map(([name]) => `+${name.toLowerCase()}`)])
  const commands = documentedRights.filter(right => right.startsWith('+') && !tested.has(right))
  t.true(commands.length > 0)
  for (const command of commands) t.true(used.has(command), command)
})
