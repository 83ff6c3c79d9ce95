// Creates several stores that share a Redis, as several processes would have them.
import type { ExecutionContext } from 'ava'
import { parseRedisAddress } from '#src/config/redis-address.js'
import { createKeyring } from '#src/session/keyring.js'
import type { SessionRecord } from '#src/session/record.js'
import { createRedisStore } from '#src/store/index.js'
import { openRedisClient } from '#src/store/redis-client.js'
import { LINK_TIMING } from '#src/store/redis-link.js'
import { LOCK_MS, type ScriptTimes } from '#src/store/scripts.js'
import type { Lock, SessionStore } from '#src/store/session-store.js'
import { type Clock, systemClock } from '#src/support/clock.js'
import { eventually } from '../helpers/eventually.js'
import { type CollectedLogs, collectLogs } from '../helpers/logs.js'

export interface Replica extends SessionStore {
  readonly logs: CollectedLogs
}

export const KEEP_MS = 60_000
export const PREFIX = 'platform-auth:test:'

const TIMES: ScriptTimes = {
  entryMs: 172_800_000,
  loginMs: 900_000,
  keepMs: KEEP_MS,
  lockMs: LOCK_MS,
  settleMs: 0
}

export interface ReplicaOptions {
  readonly prefix?: string
  readonly secret?: string
  readonly now?: () => number
  readonly times?: Partial<ScriptTimes>
  readonly keepsIndex?: boolean
  /**
   * True for tests of outages. All other tests wait longer for a command, so that a slow machine is not mistaken for a
   * failing Redis.
   */
  readonly isImpatient?: boolean
}

// A slow machine does not connect to Redis, or answer every command, within the time limits of the store. The socket has a
// time limit of 3 seconds.
const PATIENT = { commandMs: 20_000, startMs: 40_000 }
const IMPATIENT = { commandMs: 2500, startMs: 5000 }

function clockWith({ commandMs, startMs }: typeof PATIENT): Clock {
  const limits = new Map<number, number>([
    [LINK_TIMING.commandMs, commandMs],
    [LINK_TIMING.startMs, startMs]
  ])
  return { ...systemClock, after: (ms, action) => systemClock.after(limits.get(ms) ?? ms, action) }
}

export async function startReplica(
  t: Pick<ExecutionContext, 'teardown'>,
  url: string,
  options: ReplicaOptions = {}
): Promise<Replica> {
  const {
    prefix = PREFIX,
    secret = 'a secret that replicas share',
    now = Date.now,
    times,
    isImpatient,
    keepsIndex
  } = options
  const address = parseRedisAddress(url)
  if (!address) throw new Error(`${url} is not understood`)
  const logs = await collectLogs()
  const store = createRedisStore({
    open: events => openRedisClient(address, events),
    prefix,
    keyring: createKeyring([secret]),
    clock: { ...clockWith(isImpatient ? IMPATIENT : PATIENT), now },
    log: logs.log,
    times: { ...TIMES, ...times },
    ...(keepsIndex && { keepsIndex })
  })
  t.teardown(() => store.close())
  return { ...store, logs }
}

export async function startReplicas(
  t: Pick<ExecutionContext, 'teardown'>,
  url: string,
  options: ReplicaOptions = {}
): Promise<[Replica, Replica]> {
  return [await startReplica(t, url, options), await startReplica(t, url, options)]
}

export function recordOf(id: string, rev: number, refreshToken = `token ${rev}`): SessionRecord {
  return { id, rev, loggedInAt: 0, issuedAt: 0, fields: { refresh_token: refreshToken, expires_at: 0 } }
}

/** Asks for the lock of a session until this replica gets it. Fails if the answer is not that it has to wait. */
export async function lockOf(replica: Replica, session: { readonly id: string; readonly rev: number }): Promise<Lock> {
  let lock: Lock | undefined
  let loss: string | undefined
  await eventually(async () => {
    const answer = await replica.take(session, loss)
    if (answer.kind === 'mine') lock = answer.lock
    else if (answer.kind === 'wait') loss = answer.loss
    else if (answer.kind !== 'away') throw new Error(`The answer to take was ${answer.kind}.`)
    return lock !== undefined
  })
  return lock as Lock
}

/** Stores a session at this revision, as a login does. */
export async function logIn(replica: Replica, id: string): Promise<SessionRecord> {
  const record = recordOf(id, 1)
  await save(replica, await lockOf(replica, { id, rev: 0 }), record)
  return record
}

export function save(replica: Replica, lock: Lock, record: SessionRecord, keepsLock = false) {
  return replica.save(lock, { kind: 'tokens', record, keepsLock, pauseMs: 0 })
}

/** Refreshes a session: takes its lock and stores the next revision. */
export async function refresh(replica: Replica, { id, rev }: SessionRecord): Promise<SessionRecord> {
  const next = recordOf(id, rev + 1)
  await save(replica, await lockOf(replica, { id, rev }), next)
  return next
}

export function isAway(replica: Replica): boolean {
  return replica.status() === 'away'
}

export function isBack(replica: Replica): boolean {
  return replica.status() === 'redis'
}

/** Resolves when the replica is connected. */
export async function connected(...replicas: readonly Replica[]): Promise<void> {
  for (const replica of replicas) await replica.look(recordOf('nobody', 1))
}

/** Uses every script for some sessions. In a cluster, their keys are on all nodes. */
export async function useEverything(one: Replica, two: Replica): Promise<void> {
  for (let n = 0; n < 8; n++) {
    const session = await logIn(one, `id-${n}`)
    const lock = await lockOf(one, session)
    const half = recordOf(session.id, 2)
    const saved = await save(one, lock, half, true)
    if (saved.kind !== 'saved' || !saved.lock) throw new Error(`The answer to save was ${saved.kind}.`)
    const held = await two.take(half, undefined)
    if (held.kind !== 'wait') throw new Error(`The answer to take was ${held.kind}.`)
    await save(one, saved.lock, recordOf(session.id, 3))
    const found = await two.take(session, undefined)
    if (found.kind !== 'newer') throw new Error(`The answer to take was ${found.kind}.`)
    const failing = await lockOf(two, recordOf(session.id, 3))
    await two.save(failing, { kind: 'failure', pauseMs: 0, isDoubtful: false })
    const ending = await lockOf(two, recordOf(session.id, 3))
    await two.save(ending, { kind: 'ended', reason: 'refused' })
    const leaving = await logIn(two, `leaving-${n}`)
    await two.look(leaving)
    await two.logOut(leaving)
    await eventually(() => one.isLoggedOut(`leaving-${n}`))
  }
  const identity = { iss: 'https://idp.example', sub: 'ada' }
  for (let n = 0; n < 8; n++) {
    const record = { ...recordOf(`of-ada-${n}`, 1), identity: { ...identity, sid: `login-${n}` } }
    await save(one, await lockOf(one, { id: record.id, rev: 0 }), record)
  }
  if (!(await two.claim('token', 1000))) throw new Error('The token was claimed before.')
  await two.keepClaim('token', 1000)
  await two.release('token')
  await two.logOutAll({ iss: identity.iss, sid: 'login-0' }, 1)
  await two.logOutAll(identity, 1)
  await eventually(() => one.isLoggedOut('of-ada-7'))
  one.pause(30_000)
  await eventually(() => two.pausedMs(true) > 0)
}
