// The kinds of servers that redisUrl may lead to: a database with a password, a cluster, sentinels, and a server with TLS.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { eventually } from '../helpers/eventually.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { startRedisCluster, startRedisWithSentinel, startRedisWithTls } from '../helpers/redis-topologies.js'
import { coordinationContract } from './contract.js'
import { IMPATIENT, startReplica, startReplicas } from './replicas.js'
import { controlledWork, KEEP_MS, never } from './work.js'

coordinationContract(
  'redis cluster',
  async t => ({ replicas: await startReplicas(t, (await startRedisCluster(t)).url), pass: ms => pause(ms) }),
  testWithRedis
)

testWithRedis('in a cluster all nodes store keys, and a waiting replica gets results from each node', async t => {
  const { url, nodes } = await startRedisCluster(t)
  const [owner, waiter] = await startReplicas(t, url)
  for (let n = 0; n < 10; n++) {
    const work = controlledWork()
    const first = owner.once(`key ${n}`, work.run)
    await work.started
    const second = waiter.once(`key ${n}`, never)
    await pause(20)
    work.finish(n)
    await first
    t.is((await second).value, n)
    await owner.mark(`mark ${n}`, KEEP_MS)
    t.true(await waiter.isMarked(`mark ${n}`))
  }
  for (const { admin } of nodes) t.true((await admin.dbsize()) > 0)
  t.deepEqual([...owner.logs.entries, ...waiter.logs.entries], [])
})

testWithRedis('a cluster that lost a node counts as away, and is used again when the node is back', async t => {
  const { url, nodes } = await startRedisCluster(t)
  const replica = await startReplica(t, url, { timing: IMPATIENT })
  await replica.isMarked('warm')
  await nodes[1]?.kill()
  await eventually(async () => {
    const work = async () => ({ value: 1, keepMs: 1 })
    await replica.once(String(Math.random()), work, { canWait: false }).catch(() => {})
    return replica.status().store === 'away'
  })
  await nodes[1]?.restart()
  await eventually(() => replica.status().store === 'redis')
  t.deepEqual(replica.logs.entries.map(({ event }) => event).slice(0, 2), ['redis_away', 'redis_back'])
})

testWithRedis('the address of one node is enough to connect to a cluster', async t => {
  const { nodes } = await startRedisCluster(t)
  const [one, two] = await startReplicas(t, `redis://127.0.0.1:${nodes[0]?.port}?cluster`)
  for (let n = 0; n < 10; n++) await one.mark(String(n), KEEP_MS)
  for (let n = 0; n < 10; n++) t.true(await two.isMarked(String(n)))
})

testWithRedis('the address of the master comes from the sentinels, also after a failover', async t => {
  const { url, sentinel } = await startRedisWithSentinel(t)
  const [one, two] = await startReplicas(t, url, { timing: IMPATIENT })
  await one.mark('before', KEEP_MS)
  await eventually(() => two.isMarked('before'))
  const master = async () => String(await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main'))
  const old = await master()
  await eventually(async () => (await sentinel.call('SENTINEL', 'FAILOVER', 'main').catch(() => 'not yet')) === 'OK')
  await eventually(async () => (await master()) !== old)
  const [host, port] = (await master()).split(',')
  const admin = new Redis({ host, port: Number(port) })
  t.teardown(() => admin.disconnect())
  let n = 0
  await eventually(async () => {
    await one.mark(`after ${++n}`, KEEP_MS)
    return (await two.isMarked(`after ${n}`)) && (await admin.exists(`platform-auth:test:mark:after ${n}`)) === 1
  })
  t.is(one.status().store, 'redis')
})

testWithRedis('the user, the password and the database number are taken from redisUrl', async t => {
  const redis = await startRedis(t, [
    '--user',
    'server',
    'on',
    '>p@ss',
    '~platform-auth:*',
    '&platform-auth:*',
    '+@all'
  ])
  const replica = await startReplica(t, `redis://server:p%40ss@127.0.0.1:${redis.port}/7`)
  await replica.once('key', async () => ({ value: 1, keepMs: KEEP_MS }))
  t.is(replica.status().store, 'redis')
  t.deepEqual(await redis.admin.keys('*'), [])
  await redis.admin.select(7)
  t.deepEqual(await redis.admin.keys('*:result'), ['platform-auth:test:{key}:result'])
})

// The rights that docs/configuration.md lists.
const rights =
  '~platform-auth:* &platform-auth:* -@all +eval +evalsha +get +set +del +pttl +pexpire +sadd +smembers +publish +subscribe +ping +info'
const clusterRights = '+cluster|slots +cluster|info'

for (const kind of ['one server', 'a cluster'] as const) {
  testWithRedis(`on ${kind} the documented rights are sufficient`, async t => {
    const user = ['SETUSER', 'server', 'on', '>pw', ...rights.split(' ')]
    let url: string
    if (kind === 'one server') {
      const redis = await startRedis(t)
      await redis.admin.call('ACL', ...user)
      url = redis.url
    } else {
      const cluster = await startRedisCluster(t)
      for (const { admin } of cluster.nodes) await admin.call('ACL', ...user, ...clusterRights.split(' '))
      url = cluster.url
    }
    const [one, two] = await startReplicas(t, url.replace('//', '//server:pw@'))
    for (let n = 0; n < 5; n++) {
      const work = controlledWork()
      const first = one.once(`key ${n}`, work.run)
      await work.started
      const second = two.once(`key ${n}`, never)
      await one.mark(`ended ${n}`, KEEP_MS)
      t.true(await two.isMarked(`ended ${n}`))
      work.finish('value')
      await first
      t.is((await second).value, 'value')
    }
    t.deepEqual([...one.logs.entries, ...two.logs.entries], [])
  })
}

testWithRedis('over TLS a certificate that is not trusted is rejected, and the log contains the reason', async t => {
  const { url } = await startRedisWithTls(t)
  const replica = await startReplica(t, url, { timing: IMPATIENT })
  await t.throwsAsync(replica.once('key', never), { message: /shared store/ })
  await eventually(() => replica.status().store === 'away')
  t.is(replica.logs.entries[0]?.reason, 'DEPTH_ZERO_SELF_SIGNED_CERT')
})

testWithRedis('over TLS a replica connects if the certificate is trusted through NODE_EXTRA_CA_CERTS', async t => {
  const { url, certificate, admin } = await startRedisWithTls(t)
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: certificate }
  const owner = fork(new URL('owner.js', import.meta.url), [url, 'key'], { env })
  t.teardown(() => owner.kill('SIGKILL'))
  await once(owner, 'message')
  t.is(await admin.exists('platform-auth:test:{key}:lock'), 1)
})
