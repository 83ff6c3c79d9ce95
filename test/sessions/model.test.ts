// A model of three processes that share one cell, and of the provider. Any history of refreshes, changes, failures, logouts, checks
// of the access list and losses of data keeps the promises of the store, and each safeguard of the rules is needed for them.
import test from 'ava'
import fc from 'fast-check'
import * as transitions from '#src/sessions/transitions.js'
import { type Cell, type Known, type Outcome, type Step, TIMES } from '#src/sessions/transitions.js'

interface Rules {
  readonly acquire: typeof transitions.acquire<string>
  readonly commit: typeof transitions.commit<string>
  readonly find: typeof transitions.find<string>
  readonly logOut: typeof transitions.logOut<string>
  readonly restore: typeof transitions.restore<string>
}

const NOW = 1_700_000_000_000
const RECOVERY_MS = 2000

/** A token request in progress, or the check of the access list after it. The record of a session is its refresh token. */
interface Request {
  readonly rev: number
  readonly token: string
  readonly at: number
  isChecking: boolean
}

interface Process {
  readonly owner: string
  known: Known<string>
  request?: Request | undefined
  knowsLogout: boolean
}

class World {
  cell: Cell<string> | undefined = { entry: { rev: 1, hasRecord: true }, record: 'token 1' }
  now = NOW
  readonly earlier: (Cell<string> | undefined)[] = []
  readonly processes: readonly Process[]
  readonly rules: Rules
  /** What the provider knows. */
  readonly spent = new Set<string>()
  issued = 1
  pausedUntil = 0
  isOver = false
  /** The processes that a report of a loss has reached. They restore the session within the recovery time. */
  readonly hasHeard = new Set<Process>()

  constructor(rules: Rules) {
    this.rules = rules
    const known = { rev: 1, recordRev: 1, record: 'token 1' }
    this.processes = [0, 1, 2].map(number => ({ owner: `process ${number}`, known, knowsLogout: false }))
  }

  /** Stores the step of a rule, and delivers its message to all processes. */
  apply<Result>(by: Process, { cell, result, message }: Step<string, Result>): Result {
    if (cell) {
      const { entry, record } = cell
      assert(this.cell === undefined || entry.rev >= this.cell.entry.rev, 'a revision decreases')
      assert((entry.lease?.until ?? 0) <= this.now + TIMES.leaseMs, 'a lease is longer than the longest one')
      assert((entry.notBefore?.until ?? 0) <= this.now + TIMES.maxPauseMs, 'a pause is longer than the longest one')
      assert(entry.hasRecord === (record !== undefined), 'the entry does not say whether the cell has the record')
      this.earlier.push(this.cell)
      this.cell = cell
    }
    for (const process of message === undefined ? [] : this.processes) {
      if (message === 'loggedOut') process.knowsLogout = true
      else if (process.request || (process !== by && process.known.rev >= (cell?.entry.rev ?? 0)))
        this.hasHeard.add(process)
    }
    return result
  }

  learn(process: Process, rev: number, record: string): void {
    if (rev > process.known.recordRev) process.known = { rev, recordRev: rev, record }
  }

  restore(process: Process): void {
    const { known, request, owner } = process
    if (process.knowsLogout) {
      this.apply(process, this.rules.logOut(this.cell, known.rev))
      return
    }
    const sent = request && !request.isChecking ? { rev: request.rev, ms: this.now - request.at } : undefined
    const asked = { ...known, me: { owner }, unused: request ? [] : [owner, `${owner}/change`], sent }
    this.apply(process, this.rules.restore(this.cell, this.now, asked, RECOVERY_MS))
  }

  /** Acquires the lease. Returns true if it is granted. */
  acquire(process: Process, owner: string, isChange = false): boolean {
    const asked = { ...process.known, me: { owner }, isChange }
    const result = this.apply(process, this.rules.acquire(this.cell, this.now, asked, RECOVERY_MS))
    if (result.kind === 'newer') this.learn(process, result.rev, result.record as string)
    if (result.kind !== 'granted') return false
    assert(!this.isOver, 'a lease is granted after a logout')
    for (const { request } of this.processes) assert(!request?.isChecking, 'a lease is granted during a check')
    return process.known.recordRev === process.known.rev
  }

  /** Stores an outcome of a process that has, or had, the lease. */
  commit(process: Process, owner: string, rev: number, outcome: Outcome<string>): string {
    if (process.knowsLogout) return 'over'
    const result = this.apply(process, this.rules.commit(this.cell, this.now, { rev, owner, outcome }))
    if (result.kind === 'newer') this.learn(process, result.rev, result.record as string)
    if (result.kind === 'stored') assert(!this.isOver, 'an outcome is stored after a logout')
    return result.kind
  }

  refresh(process: Process): void {
    if (process.request || process.knowsLogout || !this.acquire(process, process.owner)) return
    const { rev, record: token = '' } = process.known
    assert(!this.spent.has(token), 'a refresh token is sent twice')
    assert(this.now >= this.pausedUntil, 'a token is sent during a pause')
    this.spent.add(token)
    process.request = { rev, token, at: this.now, isChecking: false }
  }

  respond(process: Process, isUnchecked: boolean): void {
    const { request, owner } = process
    if (!request || request.isChecking) return
    const record = `token ${++this.issued}`
    process.request = undefined
    if (!process.knowsLogout) this.learn(process, request.rev + 1, record)
    const hadLease = this.cell?.entry.lease?.owner === owner
    const kind = isUnchecked ? 'unchecked' : 'tokens'
    const committed = this.commit(process, owner, request.rev, { kind, record, pauseMs: 0 })
    assert(committed !== 'notOwner', 'tokens are not stored')
    if (isUnchecked && committed === 'stored' && hadLease)
      process.request = { ...request, rev: request.rev + 1, isChecking: true }
  }

  fail(process: Process, pauseMs: number): void {
    const { request, owner } = process
    if (!request || request.isChecking) return
    process.request = undefined
    this.spent.delete(request.token)
    const committed = this.commit(process, owner, request.rev, { kind: 'failure', pauseMs, refusedAs: undefined })
    if (committed === 'stored') this.pausedUntil = this.now + pauseMs
  }

  check(process: Process): void {
    const { request, owner } = process
    if (!request?.isChecking) return
    process.request = undefined
    const record = process.known.record as string
    const committed = this.commit(process, owner, request.rev, { kind: 'change', record })
    if (committed === 'stored') this.learn(process, request.rev + 1, record)
  }

  change(process: Process): void {
    const owner = `${process.owner}/change`
    if (process.knowsLogout || !this.acquire(process, owner, true)) return
    const { rev, record = '' } = process.known
    if (this.commit(process, owner, rev, { kind: 'change', record }) === 'stored') this.learn(process, rev + 1, record)
  }

  /** An outcome that arrives without a lease, as from a process that was stopped for a long time. */
  endLate(process: Process, outcome: Outcome<string>): void {
    if (process.request) return
    const before = this.cell?.entry
    this.commit(process, process.owner, process.known.rev, outcome)
    const { over, notBefore, rev } = this.cell?.entry ?? {}
    const isUnchanged = over === before?.over && notBefore === before?.notBefore && rev === before?.rev
    assert(isUnchanged, 'an outcome without tokens counts without a lease')
  }

  logOut(process: Process): void {
    this.apply(process, this.rules.logOut(this.cell, process.known.rev))
    this.isOver = true
  }

  /** Redis loses the cell, or fails over to an older one. Then all processes connect again. The pause may be lost, too. */
  lose(earlier: number | undefined): void {
    this.pausedUntil = 0
    // The lease of a check is not restored. If another process gets it, that process repeats the check.
    for (const process of this.processes) if (process.request?.isChecking) process.request = undefined
    this.cell = earlier === undefined ? undefined : this.earlier[earlier % (this.earlier.length + 1)]
    if (earlier !== undefined) for (const process of this.processes) this.restore(process)
  }

  /** Every token request and check ends in time. */
  pass(ms: number): void {
    for (const process of this.hasHeard) this.restore(process)
    this.hasHeard.clear()
    for (const process of this.processes) {
      if (process.request && this.now + ms > process.request.at + TIMES.requestMs) {
        this.respond(process, false)
        this.check(process)
      }
    }
    this.now += ms
  }

  /** At the end, the newest tokens are stored, and every process can go on with them soon. */
  end(): void {
    for (const process of this.processes) {
      this.respond(process, false)
      this.check(process)
    }
    this.lose(this.earlier.length)
    for (const process of this.processes) this.restore(process)
    if (this.isOver) {
      assert(this.rules.find(this.cell, { rev: 9, recordRev: 9 }).kind === 'over', 'a logout is forgotten')
      return
    }
    assert(this.cell?.record === `token ${this.issued}`, 'the newest tokens are lost')
    // The longest pause of these histories.
    this.now += TIMES.lostRecordMs
    const [, , last] = this.processes as [Process, Process, Process]
    this.refresh(last)
    this.refresh(last)
    assert(last.request !== undefined, 'an unused lease is not released')
  }
}

function assert(isTrue: boolean, violation: string): void {
  if (!isTrue) throw new Error(violation)
}

type Model = Record<string, never>

function command(name: string, act: (world: World) => void): fc.Command<Model, World> {
  return { check: () => true, run: (_, world) => act(world), toString: () => name }
}

type Acting = 'refresh' | 'change' | 'check' | 'logOut' | 'restore'

const lateOutcomes: readonly Outcome<string>[] = [
  { kind: 'over', end: { reason: 'refused' } },
  { kind: 'failure', pauseMs: 1000 },
  { kind: 'change', record: 'changed late' }
]
const who = fc.nat(2)
const by = (act: Acting) =>
  who.map(number => command(`${number} ${act}`, world => world[act](world.processes[number] as Process)))
const commands = [
  ...(['refresh', 'refresh', 'change', 'check', 'restore'] as const).map(by),
  fc
    .tuple(who, fc.constantFrom(...lateOutcomes))
    .map(([number, outcome]) =>
      command(`${number} ends late: ${outcome.kind}`, world =>
        world.endLate(world.processes[number] as Process, outcome)
      )
    ),
  fc
    .tuple(who, fc.boolean())
    .map(([number, isUnchecked]) =>
      command(`${number} gets ${isUnchecked ? 'unchecked ' : ''}tokens`, world =>
        world.respond(world.processes[number] as Process, isUnchecked)
      )
    ),
  fc
    .tuple(who, fc.constantFrom(0, 2000, 30_000))
    .map(([number, ms]) => command(`${number} fails`, world => world.fail(world.processes[number] as Process, ms))),
  fc.oneof(fc.constant(undefined), fc.nat(20)).map(to => command(`data loss ${to ?? ''}`, world => world.lose(to))),
  fc
    .oneof(fc.nat(3000), fc.constantFrom(2000, 30_000, 61_000))
    .map(ms => command(`${ms} ms pass`, world => world.pass(ms))),
  fc.oneof({ arbitrary: by('logOut'), weight: 1 }, { arbitrary: by('refresh'), weight: 9 })
]

/** Returns the violation that some history of these rules leads to, and undefined if there is none. */
function violationOf(rules: Rules, numRuns: number, seed?: number): string | undefined {
  const histories = fc.commands(commands, { maxCommands: 30, size: 'max' })
  const property = fc.property(histories, history => {
    const world = new World(rules)
    fc.modelRun(() => ({ model: {}, real: world }), history)
    world.end()
  })
  const { failed, counterexample, errorInstance } = fc.check(property, { numRuns, ...(seed !== undefined && { seed }) })
  return failed ? `${(errorInstance as Error).message}: ${counterexample}` : undefined
}

test('any history of three processes keeps the promises of the store', t => {
  t.is(violationOf(transitions, 1000), undefined)
})

type Entry = Cell<string>['entry']

/** Changes the entries that a rule stores. */
function storing(
  name: 'acquire' | 'commit' | 'restore',
  change: (entry: Entry, before: Entry | undefined) => Entry
): Partial<Rules> {
  const all: Rules = transitions
  const rule = all[name] as (...given: unknown[]) => Step<string, never>
  const changed = (cell: Cell<string> | undefined, ...given: unknown[]) => {
    const step = rule(cell, ...given)
    return step.cell ? { ...step, cell: { ...step.cell, entry: change(step.cell.entry, cell?.entry) } } : step
  }
  return { [name]: changed as never }
}

function withLease(cell: Cell<string>, lease: NonNullable<Entry['lease']>): Cell<string> {
  return { ...cell, entry: { ...cell.entry, lease } }
}

function withoutPause({ notBefore, ...entry }: Entry): Entry {
  return entry
}

const silent = <Result>({ message, ...step }: Step<string, Result>): Step<string, Result> => step

const safeguards: Readonly<Record<string, Partial<Rules>>> = {
  'the lease of another process is respected': {
    acquire: (cell, now, asked, ms) => transitions.acquire(cell, now, { ...asked, dead: cell?.entry.lease?.owner }, ms)
  },
  'no lease is granted in the recovery time of a repaired cell': storing('acquire', entry =>
    entry.notBefore?.why === 'loss' ? { ...entry, notBefore: { ...entry.notBefore, until: 0 } } : entry
  ),
  'a repair is reported': {
    acquire: (...given) => silent(transitions.acquire(...given))
  },
  'restore stores the records': { restore: cell => ({ cell: cell as never, result: undefined }) },
  'restore takes the lease of a request in progress': {
    restore: (cell, now, { sent, ...asked }, ms) => transitions.restore(cell, now, asked, ms)
  },
  'restore releases unused leases': {
    restore: (cell, now, asked, ms) => transitions.restore(cell, now, { ...asked, unused: [] }, ms)
  },
  'restore releases no lease that is in use': {
    restore: (cell, now, { sent, ...asked }, ms) =>
      transitions.restore(cell, now, { ...asked, unused: [asked.me.owner] }, ms)
  },
  'a pause after a failure is stored': storing('commit', withoutPause),
  'a change keeps the pause': storing('acquire', entry =>
    entry.lease?.owner.endsWith('/change') ? withoutPause(entry) : entry
  ),
  'an outcome releases the lease': storing('commit', (entry, before) => ({
    ...entry,
    ...(before?.lease && { lease: before.lease })
  })),
  'the lease stays during a check': storing('commit', ({ lease, ...entry }) => entry),
  ...Object.fromEntries(
    lateOutcomes.map(({ kind }) => [
      `an outcome counts only under the lease: ${kind}`,
      {
        commit: (cell, now, asked) =>
          transitions.commit(
            cell && asked.outcome.kind === kind ? withLease(cell, { owner: asked.owner, until: now }) : cell,
            now,
            asked
          )
      } satisfies Partial<Rules>
    ])
  ),
  'tokens count also without the lease': {
    commit(cell, now, asked) {
      const isOwner = cell?.entry.lease?.owner === asked.owner
      if (asked.outcome.kind === 'tokens' && !isOwner) return { result: { kind: 'notOwner' } }
      return transitions.commit(cell, now, asked)
    }
  },
  'a lease lasts longer than its token request': storing('acquire', entry =>
    entry.lease ? { ...entry, lease: { ...entry.lease, until: entry.lease.until - 30_000 } } : entry
  ),
  'a logout is final': {
    logOut: (cell, rev) => {
      const step = transitions.logOut(cell, rev)
      return step.cell
        ? { ...step, cell: { ...step.cell, entry: { ...step.cell.entry, isFinal: undefined } as never } }
        : step
    }
  }
}

for (const [name, change] of Object.entries(safeguards)) {
  test(`without this safeguard, some history breaks a promise: ${name}`, t => {
    const violation = violationOf({ ...transitions, ...change } as Rules, 5000, 1)
    t.not(violation, undefined)
    t.log(violation)
  })
}
