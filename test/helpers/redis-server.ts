// A Redis of its own: on loopback, nothing on disk, gone with whoever started it. Valkey does as well.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
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

// Below those that systems hand out (from 32768 on), in a range for each process: whoever still tries to reach a server
// that was killed must not find another test's in its place.
const [lowest, perProcess, ranges] = [10_240, 200, 110]
let range: Promise<number> | undefined
let used = Math.floor(Math.random() * perProcess)

/** A port that is free and is given to nobody else in our tests, so that it stays the same over a restart. */
export async function freePort(): Promise<number> {
  range ??= takeRange()
  const first = await range
  for (;;) {
    // The first one of each range is listened on.
    const port = first + 1 + (used++ % (perProcess - 1))
    const server = await listen(port)
    if (!server) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

/** The range is this process's while it lives, since it listens on the first port of it. */
async function takeRange(): Promise<number> {
  for (let range = 0; range < ranges; range++) {
    const first = lowest + range * perProcess
    const server = await listen(first)
    if (!server) continue
    server.unref()
    return first
  }
  throw new Error('every range of ports for tests is taken')
}

async function listen(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1')
  return once(server, 'listening').then(
    () => server,
    () => undefined
  )
}
