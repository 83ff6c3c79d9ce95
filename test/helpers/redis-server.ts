// Starts a Redis or Valkey server on loopback that writes nothing to the disk and ends with the process that started it.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import type { ExecutionContext } from 'ava'
import { Redis } from 'ioredis'
import { freePort } from './ports.js'
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

type Options = readonly string[] | (() => Promise<readonly string[]>)

/**
 * @param options a function for those that name ports of their own: it is called again when a port was taken meanwhile
 * @param sentinelFile makes it a sentinel, which keeps its settings there.
 */
export async function startRedis(
  t: Pick<ExecutionContext, 'teardown'>,
  options: Options = [],
  sentinelFile?: string
): Promise<RedisServer> {
  let { child, port, startAgain } = await startSomewhere(t, options, sentinelFile)
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
      child = await startAgain()
    }
  }
}

/** On a port, and in a folder, of its own. */
async function startSomewhere(
  t: Pick<ExecutionContext, 'teardown'>,
  options: Options,
  sentinelFile: string | undefined
) {
  for (;;) {
    const port = await freePort()
    // It would load what another one left in a shared folder, as a replica does that was synchronized.
    const all = ['--dir', await tempFolder(t), ...(typeof options === 'function' ? await options() : options)]
    const startAgain = () => spawnRedis(port, all, sentinelFile)
    try {
      return { child: await startAgain(), port, startAgain }
    } catch (error) {
      if (!(error instanceof PortTakenError)) throw error
    }
  }
}

class PortTakenError extends Error {}

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
    child.once('close', code => {
      const Kind = /Address already in use/.test(printed) ? PortTakenError : Error
      reject(new Kind(`redis-server ended with ${code}: ${printed}`))
    })
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
