// Runs the production code of many processes that share one Redis. The schedules of `run.ts` look for lost logins. These
// two situations measure time: Redis loses all data, and the quota of the provider is used up.
import { pino } from 'pino'
import type { Refreshed } from '#src/refresh/refresh.js'
import { createKeyring } from '#src/session/keyring.js'
import type { SessionRecord } from '#src/session/record.js'
import { LOCK_MS, type ScriptTimes, SETTLE_MS } from '#src/store/scripts.js'
import { createProvider, type SimulatedProvider } from './provider.js'
import { createRedis, type ServiceTimes, type SimulatedRedis } from './redis.js'
import { createServer, type SimulatedServer } from './server.js'
import { createWorld, type World } from './world.js'

export interface Deployment {
  readonly replicas: number
  /** The time that Redis needs for a script and for the delivery of a message. */
  readonly service: ServiceTimes
}

export interface LossOptions extends Deployment {
  /** The sessions whose people are active. */
  readonly sessions: number
  /** The time in seconds between two requests of a person. Each request goes to a random process. */
  readonly secondsBetweenRequests: number
  /** The average time in seconds between two refreshes of a session. */
  readonly secondsBetweenRefreshes: number
  /** The time in seconds for which Redis is down before it starts without data. */
  readonly outageSeconds: number
  /** The time in seconds that is simulated after Redis has started. */
  readonly observedSeconds: number
}

export interface LossResult {
  /** Seconds from the start of Redis until half of the processes, and all of them, grant locks again. */
  readonly halfSettledSeconds: number | undefined
  readonly settledSeconds: number | undefined
  /** How often a process found Redis away again, although Redis was up. */
  readonly awayAgain: number
  /** The longest time for which a command waited for Redis, in milliseconds. */
  readonly longestQueueMs: number
  readonly scripts: number
  readonly messages: number
  /** The refreshes that were due in the observed time, and those that have succeeded until its end. */
  readonly due: number
  readonly refreshed: number
  /** The responses with 503 that people got for a refresh. */
  readonly delayed: number
  readonly lostLogins: number
}

export interface QuotaOptions extends Deployment {
  /** The sessions that all are due in the same minute. */
  readonly sessions: number
  readonly callsPerMinute: number
  readonly observedMinutes: number
}

export interface QuotaResult {
  /** The sessions that still wait for new tokens after each minute. */
  readonly waiting: readonly number[]
  /** Minutes until every session had new tokens. */
  readonly minutes: number | undefined
  readonly calls: number
  /** The token requests that the provider answered with 429. */
  readonly rejected: number
  readonly messages: number
  readonly delayed: number
  readonly lostLogins: number
}

const TIMES: ScriptTimes = {
  entryMs: 172_800_000,
  loginMs: 900_000,
  keepMs: 60_000,
  lockMs: LOCK_MS,
  settleMs: SETTLE_MS
}
const START_MS = 4000
const LIFETIME_SECONDS = 3600
// A process remembers for a minute which revisions browsers have sent, and stores them again after a loss.
const REMEMBERED_MS = 60_000
const POLL_MS = 100
const MINUTE_MS = 60_000
const LOGINS_AT_ONCE = 200

interface Site {
  readonly world: World
  readonly redis: SimulatedRedis
  readonly provider: SimulatedProvider
  readonly servers: readonly SimulatedServer[]
  /** How often a process found Redis away. */
  readonly away: { count: number }
  anyServer(): SimulatedServer
}

function createSite({ replicas, service }: Deployment, seed: number): Site {
  const world = createWorld(seed)
  const provider = createProvider(world, LIFETIME_SECONDS, { share: 0, maxMs: 0 })
  const redis = createRedis(world, TIMES, { onSaved() {}, ignored: [], dropsMessages: false, service })
  const keyring = createKeyring(['a secret that only the simulation has'])
  const away = { count: 0 }
  const count = {
    write(line: string) {
      if (line.includes('"redis_away"')) away.count++
    }
  }
  const log = pino({ level: 'warn' }, count)
  const servers = Array.from({ length: replicas }, (_, index) =>
    createServer({
      process: world.createProcess(`process ${index + 1}`),
      modeName: 'dual',
      sessionStore: 'cookie',
      provider,
      redis,
      keyring,
      times: TIMES,
      log,
      marginSeconds: 0,
      sabotage: {}
    })
  )
  const anyServer = () => servers[Math.floor(world.random() * servers.length)] as SimulatedServer
  return { world, redis, provider, servers, away, anyServer }
}

/** Signs people in, and returns their sessions. */
async function signIn(site: Site, count: number): Promise<SessionRecord[]> {
  const { world, anyServer } = site
  const sessions: SessionRecord[] = []
  let failed = 0
  for (let done = 0; done < count; ) {
    const batch = Math.min(LOGINS_AT_ONCE, count - done)
    for (let index = 0; index < batch; index++) {
      void anyServer()
        .logIn(`person${done + index}`)
        .then(session => {
          if (session) sessions.push(session)
          else failed++
        })
    }
    done += batch
    while (sessions.length + failed < done) await world.run(POLL_MS)
  }
  if (failed > 0) throw new Error(`${failed} logins failed before any fault`)
  return sessions
}

/** Refreshes a session as a page does that repeats its request after each 503. Resolves with the last answer. */
function refreshWithRetries(site: Site, session: SessionRecord, onDelay: () => void): Promise<Refreshed> {
  const { world, anyServer } = site
  const expired = { ...session, fields: { ...session.fields, expires_at: world.now() - 1 } }
  return new Promise(resolve => {
    const attempt = (cookie: SessionRecord) => {
      void anyServer()
        .request(cookie)
        .then(answer => {
          if (answer.kind !== 'unavailable') return resolve(answer)
          onDelay()
          // The response has set the cookie of the newest session, even if its refresh is incomplete.
          world.after(answer.retryAfterSeconds * 1000 + world.between(0, 1000), () => attempt(answer.record))
        })
    }
    attempt(expired)
  })
}

/** Redis is down for some seconds, and starts without data. */
export async function simulateLoss(options: LossOptions, seed = 1): Promise<LossResult> {
  const { sessions, secondsBetweenRequests, secondsBetweenRefreshes, outageSeconds, observedSeconds } = options
  const site = createSite(options, seed)
  const { world, redis, servers, away, anyServer } = site
  await world.run(START_MS)
  const refreshesPerSecond = sessions / secondsBetweenRefreshes
  const due = await signIn(site, Math.ceil(refreshesPerSecond * (outageSeconds + observedSeconds)))
  const others = Math.max(0, sessions - due.length)
  const visitorOf = (index: number): SessionRecord => ({
    ...(due[0] as SessionRecord),
    id: `visitor${index}`,
    rev: 2
  })

  // The requests of the last minute, of which only the memory of the processes matters now.
  const requestsOfMinute = Math.round((others / secondsBetweenRequests) * (REMEMBERED_MS / 1000))
  for (let request = 0; request < requestsOfMinute; request++) {
    anyServer().store.browserSent(visitorOf(request % others))
  }

  redis.kill()
  redis.flush()
  away.count = 0
  let refreshed = 0
  let delayed = 0
  let lostLogins = 0
  const totalMs = (outageSeconds + observedSeconds) * 1000
  for (const [index, session] of due.entries()) {
    world.after((index / due.length) * totalMs, () => {
      void refreshWithRetries(site, session, () => delayed++).then(answer => {
        if (answer.kind === 'live') refreshed++
        else lostLogins++
      })
    })
  }
  const requests = Math.round((others / secondsBetweenRequests) * (totalMs / 1000))
  for (let request = 0, visitor = 0; request < requests; request++) {
    world.after((request / requests) * totalMs, () => void anyServer().request(visitorOf(visitor++ % others)))
  }

  await world.run(outageSeconds * 1000)
  const awayAtStart = away.count
  const scriptsBefore = scriptsOf(redis)
  redis.start()
  const startedAt = world.now()
  const settledAfter: number[] = []
  for (const [index, server] of servers.entries()) pollLock(server, index)
  let longestQueueMs = 0
  for (let elapsed = 0; elapsed < observedSeconds * 1000; elapsed += POLL_MS) {
    await world.run(POLL_MS)
    longestQueueMs = Math.max(longestQueueMs, redis.queueMs())
  }
  settledAfter.sort((a, b) => a - b)
  const secondsAt = (share: number) => settledAfter[Math.ceil(share * servers.length) - 1]
  return {
    halfSettledSeconds: secondsAt(0.5),
    settledSeconds: secondsAt(1),
    awayAgain: away.count - awayAtStart,
    longestQueueMs: Math.round(longestQueueMs),
    scripts: scriptsOf(redis) - scriptsBefore,
    messages: redis.delivered(),
    due: due.length,
    refreshed,
    delayed,
    lostLogins
  }

  /** Asks a process for the lock of a new login until it gets one. A process that has not settled asks Redis for none. */
  function pollLock(server: SimulatedServer, index: number): void {
    const poll = () => {
      void server.store.take({ id: `new login ${index}`, rev: 0 }).then(
        answer => {
          if (answer.kind === 'mine') settledAfter.push((world.now() - startedAt) / 1000)
          else world.after(POLL_MS, poll)
        },
        () => world.after(POLL_MS, poll)
      )
    }
    world.after(world.between(0, POLL_MS), poll)
  }
}

function scriptsOf({ ran }: SimulatedRedis): number {
  return [...ran.values()].reduce((sum, count) => sum + count, 0)
}

/** Many sessions are due in the same minute, and the provider answers most of their token requests with 429. */
export async function simulateQuota(options: QuotaOptions, seed = 1): Promise<QuotaResult> {
  const { sessions, callsPerMinute, observedMinutes } = options
  const site = createSite(options, seed)
  const { world, redis, provider } = site
  await world.run(START_MS)
  const due = await signIn(site, sessions)
  // The simulated minutes begin with those of the quota.
  await world.run(MINUTE_MS - (world.now() % MINUTE_MS))
  provider.callsPerMinute = callsPerMinute
  const callsBefore = provider.calls()
  let refreshed = 0
  let delayed = 0
  let lostLogins = 0
  for (const session of due) {
    world.after(world.between(0, MINUTE_MS), () => {
      void refreshWithRetries(site, session, () => delayed++).then(answer => {
        if (answer.kind === 'live') refreshed++
        else lostLogins++
      })
    })
  }
  const waiting: number[] = []
  for (let minute = 0; minute < observedMinutes && refreshed + lostLogins < sessions; minute++) {
    await world.run(MINUTE_MS)
    waiting.push(sessions - refreshed - lostLogins)
  }
  return {
    waiting,
    minutes: waiting.at(-1) === 0 ? waiting.length : undefined,
    calls: provider.calls() - callsBefore,
    rejected: provider.rejected(),
    messages: redis.delivered(),
    delayed,
    lostLogins
  }
}
