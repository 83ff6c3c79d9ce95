// Runs one schedule: several users use four processes that share a Redis, while faults happen. All code that decides
// anything about sessions is the production code.

import type { CookieSession, SessionRecord } from '#src/cookie/session-record.js'
import type { Current } from '#src/sessions/session-types.js'
import { type Cell, type End, TIMES } from '#src/sessions/transitions.js'
import { startFaults } from './faults.js'
import { createProvider, ISSUER } from './provider.js'
import { createRedis, TIME_CHECK_MS } from './redis.js'
import { requestLog, startReplica } from './replica.js'
import { ALL_SAFEGUARDS, type Safeguard } from './safeguards.js'
import type { Fault, Schedule } from './schedule.js'
import type { Replica, Simulation } from './simulation.js'
import { createWorld } from './world.js'

interface SimulationResult {
  readonly schedule: Schedule
  readonly violations: readonly string[]
  /** The accepted reasons for which logins were lost. */
  readonly excuses: readonly string[]
  /** Everything that happened, for the report of a failing seed. */
  readonly notes: readonly string[]
  readonly calls: number
}

interface User {
  readonly id: string
  cookie: CookieSession | undefined
  readonly cookies: CookieSession[]
  signedOut?: End
}

const PROCESSES = 4
const USERS = 4
const ACTIVE_MS = 60_000
const LONG_ACTIVE_MS = 150_000
// After the faults, every lease that a killed process has left behind must end.
const HEALING_MS = 80_000

/** Returns what is wrong with a cell that was stored, whatever happened before. */
function* faultsOf({ entry, record }: Cell<SessionRecord>, replaced: Cell<SessionRecord> | undefined, now: number) {
  const { lease, notBefore } = entry
  if (replaced && entry.rev < replaced.entry.rev) yield 'a revision was replaced by an earlier one'
  if (replaced?.entry.isFinal && !entry.isFinal) yield 'a logout was undone'
  if (lease && lease.until > now + TIMES.leaseMs + TIME_CHECK_MS) yield 'a lease is too long'
  if (notBefore && notBefore.until > now + TIMES.maxPauseMs + TIME_CHECK_MS) yield 'a pause is too long'
  if (entry.hasRecord !== (record !== undefined)) yield 'the entry does not fit the record'
}

export async function simulate(given: Schedule, safeguard: Safeguard = ALL_SAFEGUARDS): Promise<SimulationResult> {
  const schedule = { ...given, faults: safeguard.faults ?? given.faults, ...safeguard.schedule }
  const times = { ...TIMES }
  Object.assign(TIMES, safeguard.times)
  try {
    return await run(schedule, safeguard)
  } finally {
    Object.assign(TIMES, times)
  }
}

async function run(schedule: Schedule, safeguard: Safeguard): Promise<SimulationResult> {
  const { seed, mode, sessionStore, isGuarded } = schedule
  const world = createWorld(seed)
  const has = (...faults: readonly Fault[]) => faults.some(fault => schedule.faults.includes(fault))
  const of = () => simulation
  const redis = createRedis(world, of)
  const provider = createProvider(world, of)
  const failsOver = has('promote', 'two masters', 'promote after logout', 'promote after commit')
  const simulation: Simulation = {
    schedule,
    safeguard,
    world,
    startedAt: world.now(),
    replicas: [],
    redis,
    provider,
    recoveryMs: failsOver ? 5000 : 2000,
    violations: new Set(),
    losses: [],
    disturbedAt: 0,
    has
  }
  const { replicas, violations, losses } = simulation
  const startedAt = world.now()
  redis.onStored = (id, cell, _replica, replaced) => {
    for (const fault of faultsOf(cell, replaced, world.now())) violations.add(`${id}: ${fault}`)
    if (cell.record) provider.stored(id, cell.record.fields.refresh_token)
  }
  for (let index = 0; index < PROCESSES; index++) startReplica(simulation, `host slot ${index}`)

  const keepsInRedis = sessionStore === 'redis'
  const keyOf = (id: string) => (keepsInRedis ? { key: `key of ${id}` } : {})
  const cookieOf = (record: SessionRecord): CookieSession =>
    record.key === undefined ? record : { id: record.id, rev: record.rev, key: record.key }

  async function logIn(id: string): Promise<User> {
    const { sessions } = replicas[0] as Replica
    const expires_at = world.now() + provider.lifetimeSeconds * 1000 * world.random()
    const refresh_token = provider.begin(id)
    const tokens = mode === 'single' ? { token: 'a' } : { internal_token: 'a', public_token: 'b' }
    const record: SessionRecord = {
      kind: 'complete',
      id,
      rev: 1,
      loggedInAt: world.now(),
      issuedAt: world.now(),
      fields: { ...tokens, refresh_token, expires_at },
      ...(isGuarded && { identity: { iss: ISSUER, sub: id } }),
      ...keyOf(id)
    }
    const request = { inSlot: <T>(send: () => Promise<T>) => send(), isUrgent: true, mayWait: false }
    const login = sessions.underLease({ id, rev: 0, ...keyOf(id) }, request, async () => ({
      kind: 'tokens',
      record,
      pauseMs: 0
    }))
    await world.run(200)
    const { kind } = await login
    if (kind !== 'live') throw new Error(`a login is ${kind}`)
    return { id, cookie: cookieOf(record), cookies: [cookieOf(record)] }
  }

  const users: User[] = []
  for (let index = 0; index < USERS; index++) users.push(await logIn(`user${seed}x${index}`))
  const leaver = users[0] as User
  let logout: { readonly at: number; readonly by: Replica; isStored: boolean; knownBy: readonly Replica[] } | undefined
  let isActive = true

  const wait = (ms: number) => new Promise<void>(resolve => world.after(ms, () => resolve()))
  const isDisturbedSince = (at: number) =>
    simulation.disturbedAt > at || !redis.master.isUp || redis.master.isStopped || redis.master.slowMs > 0

  async function request(user: User, cookie: CookieSession): Promise<Current | undefined> {
    const ready = replicas.filter(({ process, listens }) => process.isAlive && listens)
    const replica = ready[Math.floor(world.random() * ready.length)]
    if (!replica) return undefined
    await wait(world.between(1, world.random() < 0.05 ? 2000 : 30))
    if (!replica.process.isAlive || !replica.listens) return undefined
    const sentAt = world.now()
    const refreshed = await new Promise<Current>((resolve, reject) => {
      const send = () => {
        replica.running++
        const ended = replica.refreshes.current(cookie, requestLog).finally(() => replica.running--)
        ended.then(resolve, reject)
      }
      world.after(0, send, { process: replica.process, kind: 'input' })
    })
    check(user, replica, refreshed, sentAt)
    const newest = refreshed.kind === 'over' ? undefined : refreshed.record
    const isSaved = !keepsInRedis || refreshed.kind === 'over' || !refreshed.isUnsaved || safeguard.namesUnsaved
    const isNew = newest !== undefined && newest.rev !== cookie.rev && isSaved
    await wait(world.between(1, world.random() < 0.05 ? 3000 : 30))
    if (isNew && world.random() > 0.05) {
      if (user.cookie) user.cookie = cookieOf(newest)
      user.cookies.push(cookieOf(newest))
    }
    // The browser keeps its cookie if no process has stored the newest revision yet.
    if (refreshed.kind === 'over') {
      user.signedOut ??= refreshed.end
      if (refreshed.end.reason !== 'lost') user.cookie = undefined
    }
    return refreshed
  }

  function check(user: User, replica: Replica, refreshed: Current, sentAt: number): void {
    if (refreshed.kind === 'live' && refreshed.record.fields.expires_at <= sentAt - 100) {
      violations.add(`${user.id} got expired tokens`)
    }
    if (refreshed.kind === 'unavailable' && refreshed.why === 'pending') checkDeadOwner(user, replica, sentAt)
    if (refreshed.kind === 'live') checkAccess(user, refreshed.record)
    if (refreshed.kind !== 'live' || user !== leaver || !logout?.isStored) return
    if (sentAt > logout.at + 1100 && logout.knownBy.includes(replica)) {
      violations.add(`${user.id} was let in by a process that knew of the logout`)
    }
    const isCalm = losses.every(at => at < sentAt - 8000) && !isDisturbedSince(sentAt - 8000)
    const isSound = ({ process, isConnected, troubles }: Replica) =>
      process.isAlive && isConnected && troubles.length === 0
    if (sentAt > logout.at + 3000 && isCalm && isSound(replica) && isSound(logout.by)) {
      violations.add(`${user.id} was let in after the logout`)
    }
  }

  /** No request may use an access token after its response showed that the account may have been removed. */
  function checkAccess({ id }: User, { fields }: SessionRecord): void {
    const { withheldFrom = Number.POSITIVE_INFINITY } = provider.grants.get(id) ?? {}
    for (const token of [fields.token, fields.internal_token, fields.public_token]) {
      const number = Number(token?.split(':')[1])
      if (number >= withheldFrom) violations.add(`${id} was removed from the access list and got ${token}`)
    }
  }

  /** No request may wait for a dead process whose host slot has a new process for 7 seconds. */
  function checkDeadOwner(user: User, replica: Replica, sentAt: number): void {
    const { lease, notBefore } = redis.cellOf(user.id)?.entry ?? {}
    const dead = replicas.find(({ owner }) => owner === lease?.owner)
    if (!dead || dead.process.isAlive || lease?.hostSlot === undefined) return
    // Without this lease, the request would wait as well: the lease has ended, or the session is in its recovery time.
    const isRecovering = notBefore?.why === 'loss' && notBefore.until > sentAt
    if (lease.until <= sentAt || isRecovering) return
    const next = replicas.find(
      ({ process, hostSlot, since, troubles }) =>
        process.isAlive &&
        hostSlot === dead.hostSlot &&
        since !== undefined &&
        !troubles.some(({ to }) => to > sentAt - 5000)
    )
    const isCalm = !replica.wasTroubledBetween(sentAt - 5000, world.now()) && !isDisturbedSince(sentAt - 7000)
    const hasWaited = next?.since !== undefined && world.now() - (next.since + startedAt) > 7000
    if (hasWaited && isCalm && replica.isConnected) violations.add('a request waits for a dead process')
  }

  // After data loss, an outdated cookie that comes first may cost the login.
  const copyShare = has('flush', 'evict', 'promote', 'two masters') ? 0.02 : 0.1
  for (const user of users) {
    const visit = () => {
      if (!isActive) return
      const parallel = 1 + Math.floor(world.random() * 5)
      for (let number = 0; number < parallel; number++) {
        const old = user.cookies[Math.floor(world.random() * user.cookies.length)]
        const cookie = world.random() < copyShare ? old : user.cookie
        if (cookie) void request(user, cookie).catch(error => violations.add(`a request failed: ${error.stack}`))
      }
      world.after(world.between(0, 3000), visit)
    }
    visit()
  }

  const isLong = has(
    'stop for long',
    'suspend for long',
    'stop after grant',
    'suspend after grant',
    'stop while sending'
  )
  world.after(world.between(0, ACTIVE_MS), () => {
    const replica = replicas.find(({ process, listens }) => process.isAlive && !process.isStopped && listens)
    if (!replica) return
    world.note(`${leaver.id} logs out at ${replica.process.name}`)
    const at = world.now()
    logout = { at, by: replica, isStored: false, knownBy: [] }
    if (has('promote after logout')) {
      world.after(400, () => {
        losses.push(world.now())
        simulation.disturbedAt = world.now()
        redis.promote(600)
      })
    }
    const isReached = (one: Replica) =>
      one.process.isAlive && one.isConnected && !one.process.isStopped && one.redis === redis.master
    const isCalm = replicas.every(one => !one.process.isAlive || isReached(one))
    world.after(1000, () => {
      // A slow Redis may store the logout, and send its message, more than a second later.
      if (!logout || !isCalm || isDisturbedSince(at)) return
      const isOld = (one: Replica) => one.startedAt < at - 1000 && !one.wasTroubledBetween(at - 1000, world.now())
      logout.knownBy = replicas.filter(one => isReached(one) && isOld(one))
    })
    const store = () =>
      void replica.sessions.end({ id: leaver.id, ...keyOf(leaver.id) }).then(() => {
        if (logout) logout.isStored = redis.cellOf(leaver.id)?.entry.over?.reason === 'logged_out'
      })
    world.after(0, store, { process: replica.process, kind: 'input' })
  })

  const removed = isGuarded ? (users[1] as User) : undefined
  if (removed) {
    world.after(world.between(0, ACTIVE_MS / 2), () => {
      world.note(`${removed.id} is removed from the access list`)
      Object.assign(provider.grants.get(removed.id) as object, { isRemoved: true })
    })
  }

  const heal = startFaults(simulation)
  await world.run(isLong ? LONG_ACTIVE_MS : ACTIVE_MS)
  isActive = false
  heal()
  await world.run(HEALING_MS)

  const excuses: string[] = []
  for (const user of users) {
    const grant = provider.grants.get(user.id)
    if (!grant || user === leaver || user === removed) continue
    let last: Current | undefined
    for (let attempt = 0; attempt < 12 && user.cookie && last?.kind !== 'live'; attempt++) {
      void request(user, user.cookie).then(refreshed => {
        last = refreshed
      })
      await world.run(11_000)
    }
    if ((last as Current | undefined)?.kind === 'live') continue
    const why = user.signedOut?.reason ?? `the session is ${JSON.stringify(last)}`
    const isUnsaved = [...grant.origins.values()].some(
      use => use.storedAt === undefined && !use.replica.process.isAlive
    )
    // The provider has replaced the token that such an owner sent, so the session can end as lost, or with the next refusal.
    const killed = isUnsaved && (why === 'lost' || why === 'refused')
    const lossExcuse = why === 'lost' ? provider.excuseOfLoss(startedAt, world.now()) : undefined
    const excuse = grant.excuse ?? (killed ? 'the owner was killed before its result was stored' : lossExcuse)
    if (excuse === undefined) violations.add(`${user.id} has lost the login: ${why}`)
    else excuses.push(excuse)
  }
  return { schedule, violations: [...violations], excuses, notes: world.notes, calls: provider.calls }
}
