// Creates several stores that share a Redis, as several processes would have them.
import type { ExecutionContext } from 'ava'
import { systemClock } from '#src/base/clock.js'
import { createKeyring } from '#src/cookie/keyring.js'
import type { SessionRecord } from '#src/cookie/session-record.js'
import {
  type Current,
  createStores,
  prefixOf,
  type Result,
  type Revision,
  type Sessions,
  type Stores,
  type Work
} from '#src/sessions/index.js'
import { type TestSettings, testConfig, unreachableIdp } from '../helpers/config.js'
import { createDeferred } from '../helpers/deferred.js'
import { eventually } from '../helpers/eventually.js'
import { type CollectedLogs, collectLogs } from '../helpers/logs.js'
import { IMPATIENT, openRedisAt, PATIENT } from '../helpers/redis-clock.js'
import { startRedis } from '../helpers/redis-server.js'

export interface Replica extends Stores {
  readonly logs: CollectedLogs
}

interface ReplicaOptions {
  readonly secret?: string
  /** The clock of the replica and of its Redis, in milliseconds since the epoch. */
  readonly now?: () => number
  readonly settings?: TestSettings
  /** True for tests of outages. */
  readonly isImpatient?: boolean
  readonly recoveryMs?: number
}

/** The beginning of the keys of sessions. */
export const SESSION_PREFIX = `${prefixOf(testConfig(unreachableIdp))}session:`

export async function startReplica(
  t: Pick<ExecutionContext, 'teardown'>,
  url: string,
  { secret = 'a secret that replicas share', now = Date.now, settings, isImpatient, recoveryMs }: ReplicaOptions = {}
): Promise<Replica> {
  const config = testConfig(unreachableIdp, { redis: { url }, ...settings })
  const logs = await collectLogs()
  const timing = { ...(isImpatient ? IMPATIENT : PATIENT), ...(recoveryMs !== undefined && { recoveryMs }) }
  const stores = createStores(config, {
    keyring: createKeyring([secret]),
    clock: { ...systemClock, now },
    log: logs.log,
    open: openRedisAt(now),
    timing
  })
  t.teardown(() => stores.close())
  return { ...stores, logs }
}

export async function startReplicas(
  t: Pick<ExecutionContext, 'teardown'>,
  url: string,
  options: ReplicaOptions = {}
): Promise<[Replica, Replica]> {
  return [await startReplica(t, url, options), await startReplica(t, url, options)]
}

/** Starts a Redis and two replicas that share it. */
export async function startPair(t: Pick<ExecutionContext, 'teardown'>, options?: ReplicaOptions) {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, options)
  return { redis, one, two }
}

export function recordOf(id: string, rev: number, refreshToken = `token ${rev}`): SessionRecord {
  const fields = { refresh_token: refreshToken, expires_at: 0 }
  return { kind: 'complete', id, rev, loggedInAt: 0, issuedAt: 0, fields }
}

interface HasSessions {
  readonly sessions: Pick<Sessions, 'current' | 'known' | 'underLease'>
}

/** Works under the lease of a session, without a queue. By default, does not wait if another process has the lease. */
export function underLease<Session extends Revision>(
  { sessions }: HasSessions,
  session: Session,
  work: Work<Session>,
  mayWait = false
): Promise<Current> {
  return sessions.underLease(session, { inSlot: send => send(), isUrgent: false, mayWait }, work)
}

const RELEASED: Result = { kind: 'failure', pauseMs: 0 }

/**
 * Asks for the lease of the newest known revision of a session, and releases it. Returns `granted`, the problem of the session or
 * the store, or where the session stands.
 */
export async function leaseFor(replica: HasSessions, id: string): Promise<string> {
  const known = replica.sessions.known(id)
  const session = (known.kind !== 'over' && known.record) || { id, rev: 0 }
  let isGranted = false
  const work = async () => {
    isGranted = true
    return RELEASED
  }
  const current = await underLease(replica, session, work).catch(error => ({
    kind: 'unavailable',
    why: error.problem
  }))
  if (isGranted) return 'granted'
  return 'why' in current ? current.why : current.kind
}

/** Work under a lease that has begun and has no result yet. */
export interface OpenWork {
  /** Stores the result of the work. */
  commit(result: Result): Promise<Current>
}

/** Asks for the lease of a session until this replica gets it. Fails if the session is over, or if there is a newer one. */
export async function openWork(replica: Replica, id: string, rev: number): Promise<OpenWork> {
  const [result, resolve] = createDeferred<Result>()
  let settled: Promise<Current> | undefined
  await eventually(async () => {
    const [begun, begin] = createDeferred()
    const work = async () => {
      begin()
      return result
    }
    const session = rev > 0 ? recordOf(id, rev) : { id, rev }
    settled = underLease(replica, session, work)
    const failed = settled.then(
      current => {
        if (current.kind !== 'unavailable') throw new Error(`The session is ${current.kind}.`)
        return false
      },
      () => false
    )
    return Promise.race([begun.then(() => true), failed])
  })
  return {
    commit(outcome) {
      resolve(outcome)
      return settled as Promise<Current>
    }
  }
}

/** Acquires the lease of a session and stores a result. */
export async function commit(replica: Replica, id: string, rev: number, result: Result): Promise<Current> {
  return (await openWork(replica, id, rev)).commit(result)
}

/** Stores a session at revision 1, as a login does. */
export async function logIn(replica: Replica, id: string): Promise<SessionRecord> {
  const record = recordOf(id, 1)
  await commit(replica, id, 0, { kind: 'tokens', record, pauseMs: 0 })
  return record
}

/** Stores the next revision of a session, as a refresh does. */
export async function refresh(replica: Replica, { id, rev }: SessionRecord): Promise<SessionRecord> {
  const record = recordOf(id, rev + 1)
  await commit(replica, id, rev, { kind: 'tokens', record, pauseMs: 0 })
  return record
}

/** Returns where the session of a cookie stands for a replica, and the newest session that it knows. */
export async function find({ sessions }: Replica, record: SessionRecord) {
  const found = await sessions.current(record)
  return { kind: found.kind, newest: found.kind === 'over' ? undefined : found.record }
}

/** Resolves when this replica finds this revision of a session, or a newer one. The connection to Redis may fail meanwhile. */
export async function finds(replica: Replica, id: string, rev: number): Promise<void> {
  await eventually(async () => {
    const found = await find(replica, recordOf(id, 1)).catch(() => undefined)
    return (found?.newest?.rev ?? 0) >= rev
  })
}

/** Resolves when this replica finds that a session is over. */
export async function findsOver(replica: Replica, id: string): Promise<void> {
  await eventually(async () => (await find(replica, recordOf(id, 1)).catch(() => undefined))?.kind === 'over')
}

/** True if this replica knows that a session is over for good. */
export function isOver({ sessions }: Pick<Stores, 'sessions'>, id: string): boolean {
  return sessions.known(id).kind === 'over'
}

export function isUnavailable(replica: Replica): boolean {
  return replica.status() === 'down'
}

export function isBack(replica: Replica): boolean {
  return replica.status() === 'up'
}

/** Resolves when the replicas are connected. */
export async function connected(...replicas: readonly Replica[]): Promise<void> {
  for (const { sessions } of replicas) await sessions.current({ id: 'nobody', rev: 0 })
}

/** Uses every kind of cell and of message. In a cluster, the cells are on all nodes. */
export async function useEverything(one: Replica, two: Replica): Promise<void> {
  for (let n = 0; n < 8; n++) {
    const session = await refresh(one, await logIn(one, `id-${n}`))
    await commit(two, session.id, 2, { kind: 'failure', pauseMs: 0 })
    await commit(two, session.id, 2, { kind: 'over', end: { reason: 'refused' } })
    const leaving = await logIn(two, `leaving-${n}`)
    await two.sessions.end(leaving)
    await eventually(() => isOver(one, `leaving-${n}`))
  }
  const identity = { iss: 'https://idp.example', sub: 'ada', signedIn: { iat: 1 } }
  for (let n = 0; n < 8; n++) {
    const record = { ...(await logIn(one, `of-ada-${n}`)), identity: { ...identity, sid: `login-${n}` } }
    await one.userSessions?.join(record)
  }
  await two.userSessions?.markUsed('token')
  await two.userSessions?.logOutAll({ iss: identity.iss, sid: 'login-0' }, 1)
  await two.userSessions?.logOutAll(identity, 1)
  await eventually(() => isOver(one, 'of-ada-7'))
  one.sessions.pause('refresh', 30_000)
  one.sessions.pause('login', 30_000)
  await eventually(() => two.sessions.pausedMs('refresh') > 0 && two.sessions.pausedMs('login') > 0)
}

/** The settings with which a server lists the sessions of each user. */
export const listed: TestSettings = {
  platform: { backchannelLogout: true, issuer: 'https://idp.example', scopes: ['openid', 'data:read'] }
}
