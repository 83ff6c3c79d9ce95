// A Redis of its own: on loopback, nothing on disk, gone with whoever started it. Valkey does as well.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { threadId } from 'node:worker_threads'
import type { ExecutionContext } from 'ava'
import { Redis } from 'ioredis'
import { tempFolder } from './temp-folder.js'

export interface RedisServer {
  readonly url: string
  readonly port: number
  /** For looking inside, and for making trouble. */
  readonly admin: Redis
  /** Stands still with its connections open, as a machine that swaps does. */
  pause(): void
  resume(): void
  /** Ends at once, as `kill -9` does. What it held is lost. */
  kill(): Promise<void>
  /** Starts again on the same port, empty. */
  restart(): Promise<void>
}

const program = ['redis-server', 'valkey-server'].find(name => spawnSync(name, ['--version']).status === 0)

export const hasRedis = program !== undefined

/** @param sentinelFile makes it a sentinel, which keeps its settings there. */
export async function startRedis(
  t: Pick<ExecutionContext, 'teardown'>,
  options: readonly string[] = [],
  sentinelFile?: string
): Promise<RedisServer> {
  const port = await freePort()
  // A folder of its own: it would load what another one left in a shared one, as a replica does that was synchronized.
  const dir = await tempFolder(t)
  const spawnIt = () => spawnRedis(port, ['--dir', dir, ...options], sentinelFile)
  let child = await spawnIt()
  const admin = new Redis({ host: '127.0.0.1', port, retryStrategy: () => 50, maxRetriesPerRequest: null })
  admin.on('error', () => {})
  t.teardown(async () => {
    admin.disconnect()
    await end(child)
  })
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    admin,
    pause: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
    kill: () => end(child),
    async restart() {
      await end(child)
      child = await spawnIt()
    }
  }
}

// Whatever ends the tests, no server outlives them.
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

async function spawnRedis(
  port: number,
  options: readonly string[],
  sentinelFile: string | undefined
): Promise<ChildProcess> {
  const where = ['--port', String(port), '--bind', '127.0.0.1']
  const kind = sentinelFile ? ['--sentinel'] : ['--save', '', '--appendonly', 'no']
  const file = sentinelFile ? [sentinelFile] : []
  const child = spawn(program as string, [...file, ...where, ...kind, ...options], {
    stdio: ['ignore', 'pipe', 'ignore']
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  await new Promise<void>((resolve, reject) => {
    let printed = ''
    child.stdout.on('data', chunk => {
      printed += chunk
      if (/Ready to accept connections|Sentinel ID is/.test(printed)) resolve()
    })
    child.once('exit', code => reject(new Error(`redis-server ended with ${code}: ${printed}`)))
    child.once('error', reject)
  })
  child.stdout.resume()
  return child
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

// Below those that systems hand out (from 32768 on), in a range for each worker: whoever still tries to reach a server
// that was killed must not find another test's in its place.
const [lowest, perWorker, workers] = [10_240, 1000, 22]
const firstPort = lowest + (threadId % workers) * perWorker
let used = Math.floor(Math.random() * perWorker)

/** A port that is free, stays the same over a restart, and is not given twice. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = firstPort + (used++ % perWorker)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false
    )
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}
