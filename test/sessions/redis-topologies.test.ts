// The kinds of servers that redis.url may lead to: a database with a password, a cluster, sentinels, and a server with TLS.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Redis } from 'ioredis'
import { defaultCallbackUrl } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { environmentFor, startProgram } from '../helpers/program.js'
import { startRedis, testWithRedis as test } from '../helpers/redis.js'
import { startRedisCluster, startRedisWithSentinel, startRedisWithTls } from '../helpers/redis-topologies.js'
import { tempFolder } from '../helpers/temp-folder.js'
import {
  connected,
  finds,
  isBack,
  leaseFor,
  logIn,
  refresh,
  SESSION_PREFIX,
  startReplica,
  startReplicas
} from './replicas.js'

const impatient = { isImpatient: true }

test('if a cluster has lost a node, requests fail until the node is back', async t => {
  const { url, nodes } = await startRedisCluster(t)
  const replica = await startReplica(t, url, impatient)
  await connected(replica)
  await nodes[1]?.kill()
  let n = 0
  await eventually(async () => (await leaseFor(replica, `id-${n++}`)) === 'redis')
  await nodes[1]?.restart()
  await eventually(async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `id-${n + index}`)
    n += ids.length
    const answers = await Promise.all(ids.map(id => leaseFor(replica, id)))
    return answers.every(answer => answer === 'granted')
  })
  await eventually(() => isBack(replica))
  t.pass()
})

test('a process that closes its client while it reads the slots of a cluster ends by itself', async t => {
  const { url } = await startRedisCluster(t)
  const child = fork(new URL('closing-client.js', import.meta.url), [url])
  t.teardown(() => child.kill('SIGKILL'))
  t.deepEqual(await once(child, 'exit'), [0, null])
})

test('the address of one node is enough to connect to a cluster', async t => {
  const { nodes } = await startRedisCluster(t)
  const [one, two] = await startReplicas(t, `redis://127.0.0.1:${nodes[0]?.port}?cluster`)
  for (let n = 0; n < 10; n++) await one.sessions.end({ id: `id-${n}` })
  for (let n = 0; n < 10; n++) t.is((await two.sessions.current({ id: `id-${n}`, rev: 0 })).kind, 'over')
})

test('the address of the master comes from the sentinels, also after a failover', async t => {
  const { url, sentinel } = await startRedisWithSentinel(t)
  const [one, two] = await startReplicas(t, url, impatient)
  const session = await logIn(one, 'id')
  await finds(two, session.id, 1)
  const master = async () => String(await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main'))
  const old = await master()
  await eventually(async () => (await sentinel.call('SENTINEL', 'FAILOVER', 'main').catch(() => 'not yet')) === 'OK')
  await eventually(async () => (await master()) !== old)
  const [host, port] = (await master()).split(',')
  const admin: Redis = sentinel.duplicate({ host: host as string, port: Number(port) })
  t.teardown(() => admin.disconnect())
  await refresh(one, session)
  await eventually(async () => (await admin.exists(`${SESSION_PREFIX}id`)) === 1)
  await finds(two, session.id, 2)
  t.is(one.status(), 'up')
})

test('the user, the password and the database number are taken from redis.url', async t => {
  const user = ['--user', 'server', 'on', '>p@ss', '~platform-auth:*', '&platform-auth:*', '+@all']
  const redis = await startRedis(t, user)
  const replica = await startReplica(t, `redis://server:p%40ss@127.0.0.1:${redis.port}/7`)
  await logIn(replica, 'id')
  t.is(replica.status(), 'up')
  t.deepEqual(await redis.admin.keys('*'), [])
  await redis.admin.select(7)
  t.is(await redis.admin.exists(`${SESSION_PREFIX}id`), 1)
})

test('over TLS a server connects if the certificate is trusted through NODE_EXTRA_CA_CERTS', async t => {
  const { url, certificate } = await startRedisWithTls(t)
  const idp = { clientId: 'client', clientSecret: 'gH5tR2wQ8zXc7VbN', issuer: 'https://127.0.0.1:9' }
  const program = await startProgram(t, {
    cwd: await tempFolder(t),
    env: { ...environmentFor(idp, defaultCallbackUrl), REDIS_URL: url, NODE_EXTRA_CA_CERTS: certificate }
  })
  const stored = async () => (await fetch(`${program.url}/readyz`)).json() as Promise<{ redis: string }>
  await eventually(async () => (await stored()).redis === 'up')
  t.pass()
})
