// The kinds of servers that redisUrl may lead to: a database with a password, a cluster, sentinels, and a server with TLS.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Redis } from 'ioredis'
import { eventually } from '../helpers/eventually.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { startRedisCluster, startRedisWithSentinel, startRedisWithTls } from '../helpers/redis-topologies.js'
import {
  connected,
  isAway,
  isBack,
  logIn,
  PREFIX,
  recordOf,
  refresh,
  startReplica,
  startReplicas,
  useEverything
} from './replicas.js'

const impatient = { isImpatient: true, times: { settleMs: 500 } }

testWithRedis('in a cluster all scripts work, and all nodes store sessions', async t => {
  const { url, nodes } = await startRedisCluster(t)
  const [one, two] = await startReplicas(t, url, { keepsIndex: true })
  await connected(one, two)
  await useEverything(one, two)
  for (const { admin } of nodes) t.true((await admin.dbsize()) > 0)
  t.deepEqual([...one.logs.entries, ...two.logs.entries], [])
})

testWithRedis('a cluster that lost a node counts as away, and is used again when the node is back', async t => {
  const { url, nodes } = await startRedisCluster(t)
  const replica = await startReplica(t, url, impatient)
  await connected(replica)
  await nodes[1]?.kill()
  let n = 0
  await eventually(async () => {
    await replica.take({ id: `id-${n++}`, rev: 0 }, undefined)
    return isAway(replica)
  })
  await nodes[1]?.restart()
  await eventually(() => isBack(replica))
  t.deepEqual(replica.logs.entries.map(({ event }) => event).slice(0, 2), ['redis_away', 'redis_back'])
})

testWithRedis('the address of one node is enough to connect to a cluster', async t => {
  const { nodes } = await startRedisCluster(t)
  const [one, two] = await startReplicas(t, `redis://127.0.0.1:${nodes[0]?.port}?cluster`)
  for (let n = 0; n < 10; n++) await one.logOut(recordOf(`id-${n}`, 1))
  for (let n = 0; n < 10; n++) t.is((await two.look(recordOf(`id-${n}`, 1))).kind, 'out')
})

testWithRedis('the address of the master comes from the sentinels, also after a failover', async t => {
  const { url, sentinel } = await startRedisWithSentinel(t)
  const [one, two] = await startReplicas(t, url, impatient)
  const session = await logIn(one, 'id')
  await eventually(async () => (await two.take({ id: 'id', rev: 0 }, undefined)).kind === 'newer')
  const master = async () => String(await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main'))
  const old = await master()
  await eventually(async () => (await sentinel.call('SENTINEL', 'FAILOVER', 'main').catch(() => 'not yet')) === 'OK')
  await eventually(async () => (await master()) !== old)
  const [host, port] = (await master()).split(',')
  const admin: Redis = sentinel.duplicate({ host: host as string, port: Number(port) })
  t.teardown(() => admin.disconnect())
  await refresh(one, session)
  await eventually(async () => (await admin.hget(`${PREFIX}{id}`, 'rev')) === '2')
  await eventually(async () => (await two.take(session, undefined)).kind === 'newer')
  t.is(one.status(), 'redis')
})

testWithRedis('the user, the password and the database number are taken from redisUrl', async t => {
  const user = ['--user', 'server', 'on', '>p@ss', '~platform-auth:*', '&platform-auth:*', '+@all']
  const redis = await startRedis(t, user)
  const replica = await startReplica(t, `redis://server:p%40ss@127.0.0.1:${redis.port}/7`)
  await logIn(replica, 'id')
  t.is(replica.status(), 'redis')
  t.deepEqual(await redis.admin.keys('*'), [])
  await redis.admin.select(7)
  t.is(await redis.admin.exists(`${PREFIX}{id}`), 1)
})

testWithRedis('over TLS a certificate that is not trusted is rejected, and the log contains the reason', async t => {
  const { url } = await startRedisWithTls(t)
  const replica = await startReplica(t, url, impatient)
  await eventually(() => isAway(replica))
  t.is((await replica.take({ id: 'id', rev: 0 }, undefined)).kind, 'away')
  t.is(replica.logs.entries[0]?.reason, 'DEPTH_ZERO_SELF_SIGNED_CERT')
})

testWithRedis('over TLS a replica connects if the certificate is trusted through NODE_EXTRA_CA_CERTS', async t => {
  const { url, certificate, admin } = await startRedisWithTls(t)
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: certificate }
  const owner = fork(new URL('owner.js', import.meta.url), [url], { env })
  t.teardown(() => owner.kill('SIGKILL'))
  await once(owner, 'message')
  t.truthy(await admin.hget(`${PREFIX}{id}`, 'owner'))
})
