// Runs the program as several server processes with settings from the environment, as an operator does. Each process
// occupies a slot. The slots are numbered from 0. When a process has ended, a new process can be started in its slot.
import { type Program, startProgram } from '../../helpers/program.js'
import type { Teardown } from '../../helpers/scope.js'
import { tempFolder } from '../../helpers/temp-folder.js'

export interface LogLine {
  readonly at: number
  readonly process: string
  readonly level: string
  readonly event?: string
  readonly [field: string]: unknown
}

interface Replica {
  /** A unique name for each process that was started: `1.2` is the second process in slot 1. */
  readonly name: string
  readonly slot: number
  readonly program: Program
}

export type Fleet = Awaited<ReturnType<typeof startFleet>>

/** @param environment the settings of a process, by its slot and its name */
export async function startFleet(
  scope: Teardown,
  size: number,
  environment: (slot: number, name: string) => Readonly<Record<string, string>>
) {
  // A folder without settings files.
  const cwd = await tempFolder(scope)
  const all: Replica[] = []
  const running = new Map<number, Replica>()
  const killed = new Map<string, number>()
  const lines: LogLine[] = []
  const starts = Array<number>(size).fill(0)

  async function start(slot: number): Promise<void> {
    starts[slot] = (starts[slot] ?? 0) + 1
    const name = `${slot}.${starts[slot]}`
    const program = await startProgram(scope, {
      cwd,
      env: environment(slot, name),
      onLine: line => lines.push({ at: performance.now(), process: name, level: 'fatal', ...line })
    })
    const replica = { name, slot, program }
    all.push(replica)
    running.set(slot, replica)
  }

  /** Returns the process that runs in this slot. */
  function inSlot(slot: number): Replica {
    const replica = running.get(slot)
    if (!replica) throw new Error(`No process runs in slot ${slot}.`)
    return replica
  }

  /** Ends the process in this slot with a signal. Resolves with its exit code. */
  async function end(slot: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    const { program, name } = inSlot(slot)
    const { child, ended } = program
    if (child.exitCode === null && child.signalCode === null) {
      program.signal(signal)
      if (signal === 'SIGKILL') killed.set(name, performance.now())
    }
    const { code } = await ended
    running.delete(slot)
    return code
  }

  scope.teardown(() => Promise.all([...running.keys()].map(slot => end(slot, 'SIGKILL'))))
  await Promise.all(starts.map((_, slot) => start(slot)))
  return {
    /** The running processes. A process that has just ended may still be in the list. */
    get replicas(): readonly Replica[] {
      return [...running.values()]
    },
    /** The log lines of all processes. */
    lines: lines as readonly LogLine[],
    /** What processes wrote to standard error, which must be nothing. */
    get complaints(): readonly string[] {
      return all.flatMap(({ name, program }) => (program.stderr() === '' ? [] : [`${name}: ${program.stderr()}`]))
    },
    killedAt: (process: string) => killed.get(process),
    inSlot,
    end,
    start
  }
}
