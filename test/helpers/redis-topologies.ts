// Redis as a cluster, with a sentinel, and with TLS.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { Redis } from 'ioredis'
import { type CertificateOptions, selfSignedCertificate } from './certificate.js'
import { eventually } from './eventually.js'
import { freePort } from './ports.js'
import { type RedisServer, startRedis } from './redis-server.js'
import { tempFolder } from './temp-folder.js'

type Test = Pick<ExecutionContext, 'teardown'>

interface ClusterOptions {
  readonly masters?: number
  /** The number of further nodes, which know the cluster and serve no slots. */
  readonly others?: number
  /** Arguments of each redis-server. */
  readonly redisArguments?: readonly string[] | (() => Promise<readonly string[]>)
}

const SLOTS = 16_384

/** Starts masters that share the hash slots, by default two. They come first in `nodes`. */
export async function startRedisCluster(
  t: Test,
  { masters = 2, others = 0, redisArguments = [] }: ClusterOptions = {}
): Promise<{ url: string; nodes: readonly RedisServer[] }> {
  const count = masters + others
  const options = async () => [
    '--cluster-enabled',
    'yes',
    '--cluster-port',
    String(await freePort()),
    ...(typeof redisArguments === 'function' ? await redisArguments() : redisArguments)
  ]
  const nodes = await Promise.all(Array.from({ length: count }, () => startRedis(t, options)))
  const [first] = nodes as [RedisServer]
  const firstSlot = (index: number) => Math.floor((index * SLOTS) / masters)
  for (const [index, { admin }] of nodes.entries()) {
    await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
    if (index < masters) await admin.call('CLUSTER', 'ADDSLOTSRANGE', firstSlot(index), firstSlot(index + 1) - 1)
    if (index > 0) await admin.call('CLUSTER', 'MEET', '127.0.0.1', first.port, await portOf(first, 'cluster-port'))
  }
  const isComplete = new RegExp(`cluster_state:ok[\\s\\S]*cluster_known_nodes:${count}\\b`)
  for (const { admin } of nodes) {
    await eventually(async () => isComplete.test(String(await admin.call('CLUSTER', 'INFO'))))
  }
  return { url: `redis://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`, nodes }
}

/** Starts a master, a replica, and a sentinel that monitors them as `main`. */
export async function startRedisWithSentinel(t: Test): Promise<{ url: string; sentinel: Redis; master: Redis }> {
  const master = await startRedis(t)
  await startRedis(t, ['--replicaof', '127.0.0.1', String(master.port), '--repl-diskless-sync-delay', '0'])
  const dir = await tempFolder(t)
  const file = join(dir, 'sentinel.conf')
  await writeFile(file, `sentinel monitor main 127.0.0.1 ${master.port} 1\nsentinel failover-timeout main 5000\n`)
  const { admin: sentinel, port } = await startRedis(t, [], { sentinelFile: file })
  await eventually(async () => ((await sentinel.call('SENTINEL', 'REPLICAS', 'main')) as unknown[]).length > 0)
  return { url: `redis://127.0.0.1:${port}?sentinel=main`, sentinel, master: master.admin }
}

/**
 * Starts a server that also speaks TLS, with a self-signed certificate that no client trusts.
 * @param options.trusted makes Redis require a client certificate, for which it trusts its own certificate and these ones
 */
export async function startRedisWithTls(t: Test, options: TlsOptions = {}) {
  const { tls, certificate, key } = await tlsArguments(t, options)
  const redis = await startRedis(t, tls)
  const url = `rediss://localhost:${await portOf(redis, 'tls-port')}`
  return { url, certificate, key, admin: redis.admin }
}

/** Starts a cluster whose nodes also speak TLS and announce IP addresses, behind one certificate for `host`. */
export async function startClusterWithTls(t: Test, options: TlsOptions) {
  const { tls, certificate } = await tlsArguments(t, options)
  const redisArguments = async () => [...(await tls()), '--tls-cluster', 'yes']
  const { nodes } = await startRedisCluster(t, { redisArguments })
  const [first] = nodes as [RedisServer]
  return { url: `rediss://127.0.0.1:${await portOf(first, 'tls-port')}?cluster`, certificate }
}

type TlsOptions = CertificateOptions & { readonly trusted?: string[] }

async function tlsArguments(t: Test, options: TlsOptions) {
  const { trusted = [] } = options
  const signed = selfSignedCertificate(options)
  const dir = await tempFolder(t, {
    'key.pem': signed.key,
    'certificate.pem': signed.cert,
    'trusted.pem': [signed.cert, ...trusted].join('')
  })
  // The paths of the certificate and of its private key.
  const [key, certificate] = [join(dir, 'key.pem'), join(dir, 'certificate.pem')]
  const files = ['--tls-cert-file', certificate, '--tls-key-file', key, '--tls-ca-cert-file', join(dir, 'trusted.pem')]
  const clients = ['--tls-auth-clients', options.trusted ? 'yes' : 'no']
  const tls = async () => ['--tls-port', String(await freePort()), ...files, ...clients]
  return { tls, certificate, key }
}

async function portOf({ admin }: RedisServer, setting: 'cluster-port' | 'tls-port'): Promise<string> {
  const [, port] = (await admin.config('GET', setting)) as [string, string]
  return port
}
