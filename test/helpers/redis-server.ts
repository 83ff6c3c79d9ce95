// Starts a Redis or Valkey server on loopback. It keeps no data on disk and ends with the process that started it.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import type { ExecutionContext } from 'ava'
import { Redis } from 'ioredis'
import { freePort } from './ports.js'
import { tempFolder } from './temp-folder.js'

export type RedisServer = Awaited<ReturnType<typeof startRedis>>

interface RedisProgram {
  /** The name or path of the executable. */
  readonly program: string
  /** Its kind and version, such as `Redis 7.0.15` or `Valkey 8.0.1`. */
  readonly name: string
}

/**
 * The servers that the contract tests use. The first one is also used by all other tests. By default there is one, which
 * is installed on the machine. REDIS_SERVERS lists others: their paths, separated by colons.
 */
export const redisPrograms: readonly RedisProgram[] = process.env.REDIS_SERVERS
  ? process.env.REDIS_SERVERS.split(':').map(program => {
      const found = describeProgram(program)
      if (!found) throw new Error(`REDIS_SERVERS contains ${program}, which is not a Redis or Valkey server.`)
      return found
    })
  : ['redis-server', 'valkey-server'].flatMap(program => describeProgram(program) ?? []).slice(0, 1)

export const hasRedis = redisPrograms.length > 0

function describeProgram(program: string): RedisProgram | undefined {
  const { stdout, status } = spawnSync(program, ['--version'], { encoding: 'utf8' })
  const [, kind, version] = /^(Redis|Valkey) server v=([\d.]+)/.exec(stdout ?? '') ?? []
  return status === 0 && kind ? { program, name: `${kind} ${version}` } : undefined
}

/** A function if the options contain other ports. It is called again if one of the ports was taken. */
type Options = readonly string[] | (() => Promise<readonly string[]>)

interface ServerKind {
  /** Starts a sentinel that keeps its settings in this file. */
  readonly sentinelFile?: string
  /** The executable. The default is the first one of `redisPrograms`. */
  readonly program?: string
}

export async function startRedis(t: Pick<ExecutionContext, 'teardown'>, options: Options = [], kind: ServerKind = {}) {
  let { child, port, folder, startAgain } = await startSomewhere(t, options, kind)
  const admin = new Redis({ host: '127.0.0.1', port, retryStrategy: () => 50, maxRetriesPerRequest: null })
  admin.on('error', () => {})
  t.teardown(async () => {
    admin.disconnect()
    await end(child)
  })
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    /** The working folder of the server, in which it keeps its append-only file if it has one. */
    folder,
    /** A connection for tests that inspect the data or cause failures. */
    admin,
    /** Stops the process with its connections open, as on a machine that swaps. */
    pause: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
    /** Kills the process as `kill -9` does. Its data is lost. */
    kill: () => end(child),
    /** Starts the server again on the same port, without data. */
    async restart() {
      await end(child)
      child = await startAgain()
    }
  }
}

/** Starts Redis on a port and in a folder of its own. */
async function startSomewhere(t: Pick<ExecutionContext, 'teardown'>, options: Options, kind: ServerKind) {
  for (;;) {
    const port = await freePort()
    // The folder is new, because Redis loads the data file that a synchronized replica leaves in its folder.
    const folder = await tempFolder(t)
    const all = ['--dir', folder, ...(typeof options === 'function' ? await options() : options)]
    const startAgain = () => spawnRedis(port, all, kind)
    try {
      return { child: await startAgain(), port, folder, startAgain }
    } catch (error) {
      if (!(error instanceof PortTakenError)) throw error
    }
  }
}

class PortTakenError extends Error {}

// Every server is killed when the test process exits, for whatever reason.
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

async function spawnRedis(
  port: number,
  options: readonly string[],
  { sentinelFile, program = redisPrograms[0]?.program ?? 'redis-server' }: ServerKind
): Promise<ChildProcess> {
  const where = ['--port', String(port), '--bind', '127.0.0.1']
  const kind = sentinelFile ? ['--sentinel'] : ['--save', '', '--appendonly', 'no']
  const file = sentinelFile ? [sentinelFile] : []
  const child = spawn(program, [...file, ...where, ...kind, ...options], {
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
