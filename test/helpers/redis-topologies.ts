// Redis as it is run when one server is not enough, or not alone on its network.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import type { Redis } from 'ioredis'
import { selfSignedCertificate } from './certificate.js'
import { freePort, type RedisServer, startRedis } from './redis-server.js'
import { tempFolder } from './temp-folder.js'

type Test = Pick<ExecutionContext, 'teardown'>

/** Two masters that share the slots between them. */
export async function startRedisCluster(t: Test): Promise<{ url: string; nodes: readonly RedisServer[] }> {
  const busPorts = [await freePort(), await freePort()]
  const nodes = await Promise.all(
    busPorts.map(busPort => startRedis(t, ['--cluster-enabled', 'yes', '--cluster-port', String(busPort)]))
  )
  const [first, second] = nodes as [RedisServer, RedisServer]
  await first.admin.call('CLUSTER', 'ADDSLOTSRANGE', 0, 8191)
  await second.admin.call('CLUSTER', 'ADDSLOTSRANGE', 8192, 16383)
  await first.admin.call('CLUSTER', 'MEET', '127.0.0.1', second.port, busPorts[1] as number)
  for (const { admin } of nodes) {
    while (!/cluster_state:ok[\s\S]*cluster_known_nodes:2/.test(String(await admin.call('CLUSTER', 'INFO'))))
      await pause(50)
  }
  return { url: `redis://127.0.0.1:${first.port},127.0.0.1:${second.port}`, nodes }
}

/** A master, its replica, and a sentinel that knows them as `main`. */
export async function startRedisWithSentinel(t: Test): Promise<{ url: string; sentinel: Redis }> {
  const master = await startRedis(t)
  await startRedis(t, ['--replicaof', '127.0.0.1', String(master.port), '--repl-diskless-sync-delay', '0'])
  const dir = await tempFolder(t)
  const file = join(dir, 'sentinel.conf')
  await writeFile(file, `sentinel monitor main 127.0.0.1 ${master.port} 1\nsentinel failover-timeout main 5000\n`)
  const { admin: sentinel, port } = await startRedis(t, [], file)
  while (((await sentinel.call('SENTINEL', 'REPLICAS', 'main')) as unknown[]).length === 0) await pause(100)
  return { url: `redis://127.0.0.1:${port}?sentinel=main`, sentinel }
}

/** A server that speaks TLS only, with a certificate that nobody knows. */
export async function startRedisWithTls(t: Test): Promise<{ url: string; certificate: string; admin: Redis }> {
  const dir = await tempFolder(t)
  const [key, certificate] = [join(dir, 'key.pem'), join(dir, 'certificate.pem')]
  const signed = selfSignedCertificate()
  await Promise.all([writeFile(key, signed.key), writeFile(certificate, signed.cert)])
  const port = await freePort()
  const files = ['--tls-cert-file', certificate, '--tls-key-file', key, '--tls-ca-cert-file', certificate]
  const { admin } = await startRedis(t, ['--tls-port', String(port), ...files, '--tls-auth-clients', 'no'])
  return { url: `rediss://localhost:${port}`, certificate, admin }
}
