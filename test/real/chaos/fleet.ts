// Runs the program as several server processes with settings from the environment, as an operator does. Each process
// occupies a slot. The slots are numbered from 0. When a process has ended, a new process can be started in its slot.
import type { HostileIdp } from '../../helpers/hostile-idp/index.js'
import { environmentWithEndpoints, type Program, startProgram } from '../../helpers/program.js'
import type { Teardown } from '../../helpers/scope.js'
import { secretOf } from './provider.js'

interface FleetOptions {
  readonly size: number
  readonly mode: 'single' | 'dual'
  readonly idp: HostileIdp
  readonly callbackUrl: string
  readonly timeLimitMs: number
  /** The address at which the process in that slot reaches Redis. */
  readonly redisUrl: (slot: number) => string | undefined
  /** Further settings of the process in that slot. They replace the settings of all processes. */
  readonly environment: (slot: number) => Readonly<Record<string, string>>
  /** A folder without settings files. */
  readonly cwd: string
}

export interface LogLine {
  readonly at: number
  readonly process: string
  readonly level: string
  readonly event?: string
  readonly [field: string]: unknown
}

export interface Replica {
  /** A unique name for each process that was started: `1.2` is the second process in slot 1. */
  readonly name: string
  readonly slot: number
  readonly url: string
  pause(): void
  resume(): void
}

export interface Fleet {
  /** The running processes. A process that has just ended may still be in the list. */
  readonly replicas: readonly Replica[]
  /** The log lines of all processes. */
  readonly lines: readonly LogLine[]
  /** Lines on standard error. None are expected. */
  readonly complaints: readonly string[]
  killedAt(process: string): number | undefined
  /** Returns true if this process was started while Redis was unavailable, and was not connected to Redis yet. */
  wasNeverConnected(process: string, at: number): boolean
  /** Returns the process that runs in this slot. */
  inSlot(slot: number): Replica
  /** Sends SIGKILL to the process in this slot. */
  kill(slot: number): Promise<void>
  /** Sends SIGTERM, after which the process finishes its requests. Resolves with its exit code. */
  stop(slot: number): Promise<number | null>
  start(slot: number): Promise<void>
}

/** Longer than a process waits for its first connection to Redis before it reports that Redis is unavailable. */
const FIRST_CONNECTION_MS = 5000

export async function startFleet(scope: Teardown, options: FleetOptions): Promise<Fleet> {
  const running = new Map<number, Replica & { readonly program: Program }>()
  const starts = new Map<number, number>()
  const started = new Map<string, number>()
  const killed = new Map<string, number>()
  const lines: LogLine[] = []
  const programs = new Map<string, Program>()

  async function start(slot: number): Promise<void> {
    const count = (starts.get(slot) ?? 0) + 1
    starts.set(slot, count)
    const name = `${slot}.${count}`
    const program = await startProgram(scope, {
      cwd: options.cwd,
      env: environment(name, slot, options),
      onLine: line => lines.push({ at: performance.now(), process: name, level: 'fatal', ...line })
    })
    started.set(name, performance.now())
    programs.set(name, program)
    const { url, signal } = program
    running.set(slot, { name, slot, url, program, pause: () => signal('SIGSTOP'), resume: () => signal('SIGCONT') })
  }

  function inSlot(slot: number) {
    const replica = running.get(slot)
    if (!replica) throw new Error(`No process runs in slot ${slot}.`)
    return replica
  }

  async function kill(slot: number): Promise<void> {
    const { program, name } = inSlot(slot)
    const { child, signal, ended } = program
    if (child.exitCode === null && child.signalCode === null) {
      signal('SIGKILL')
      killed.set(name, performance.now())
    }
    await ended
    running.delete(slot)
  }

  scope.teardown(() => Promise.all([...running.keys()].map(kill)))
  await Promise.all(Array.from({ length: options.size }, (_, slot) => start(slot)))
  return {
    get replicas() {
      return [...running.values()]
    },
    lines,
    get complaints() {
      return [...programs].flatMap(([name, { stderr }]) => (stderr() === '' ? [] : [`${name}: ${stderr()}`]))
    },
    killedAt: name => killed.get(name),
    wasNeverConnected(name, at) {
      const since = lines.find(({ process, event }) => process === name && event === 'redis_unavailable')?.at
      if (since === undefined || since > (started.get(name) ?? 0) + FIRST_CONNECTION_MS) return false
      const until = lines.find(({ process, event }) => process === name && event === 'redis_available')?.at
      return at >= since && (until === undefined || at <= until)
    },
    inSlot,
    kill,
    async stop(slot) {
      const { signal, ended } = inSlot(slot).program
      signal('SIGTERM')
      const { code } = await ended
      running.delete(slot)
      return code
    },
    start
  }
}

function environment(name: string, slot: number, options: FleetOptions) {
  const { mode, idp, callbackUrl, timeLimitMs } = options
  const redisUrl = options.redisUrl(slot)
  return {
    ...environmentWithEndpoints(idp, callbackUrl),
    PLATFORM_AUTH_MODE: mode,
    PLATFORM_CLIENT_SECRET: secretOf(name),
    PLATFORM_TIMEOUT: String(timeLimitMs / 1000),
    ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
    ...options.environment(slot)
  }
}
