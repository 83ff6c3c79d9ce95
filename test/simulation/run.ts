// Runs one schedule: some people use three processes that share a Redis, while faults happen. All code that decides
// anything about sessions is the production code.
import { pino } from 'pino'
import { createKeyring } from '#src/session/keyring.js'
import type { SessionRecord } from '#src/session/record.js'
import type { ScriptName } from '#src/store/lua.js'
import { LOCK_MS, type ScriptTimes, SETTLE_MS } from '#src/store/scripts.js'
import { type FaultKind, startFaults } from './faults.js'
import { createPerson } from './person.js'
import { createProvider, type ProviderQueue } from './provider.js'
import { createRedis } from './redis.js'
import { createServer, keyOf, type Sabotage, type SimulatedServer } from './server.js'
import { createWorld } from './world.js'

export interface Schedule {
  readonly seed: number
  readonly mode: 'single' | 'dual'
  /** The place of the sessions, as in the setting `session.store`. */
  readonly sessionStore: 'cookie' | 'redis'
  readonly kinds: readonly FaultKind[]
}

export interface SimulationResult {
  readonly schedule: Schedule
  /** What must never happen: lost logins, refresh tokens that were used twice, requests that got in after a logout. */
  readonly violations: readonly string[]
  /** Everything that happened, for the report of a failing seed. */
  readonly notes: readonly string[]
  readonly calls: number
  /** The accepted reasons for which logins were lost. */
  readonly excuses: readonly string[]
}

/** A change that switches one safeguard off. A simulation with it must find violations. */
export interface Safeguard extends Sabotage {
  readonly name: string
  /** The faults against which it helps. */
  readonly kinds: readonly FaultKind[]
  readonly times?: Partial<ScriptTimes>
  readonly ignoredScripts?: readonly ScriptName[]
  readonly dropsMessages?: boolean
  readonly queue?: ProviderQueue
  /** Where the sessions must be to need this safeguard. Undefined for everywhere. */
  readonly sessionStore?: Schedule['sessionStore']
}

const PEOPLE = 4
const PROCESSES = 3
const ACTIVE_MS = 60_000
const PAGE_EVERY_MS = 1500
// After the faults, every lock that a killed process has left behind must end.
const HEALING_MS = 80_000
const ATTEMPTS = 40

// Faults that lose data are not mixed with kills, because a killed process loses the only other copy.
const SINGLE: readonly (readonly FaultKind[])[] = [
  [],
  ['slow provider'],
  ['busy provider'],
  ['stop process'],
  ['suspend process'],
  ['stop process for long'],
  ['suspend process for long'],
  ['kill process'],
  ['cut process'],
  ['kill redis'],
  ['stop redis'],
  ['flush'],
  ['evict entry'],
  ['evict record'],
  ['promote']
]
const MIXED: readonly (readonly FaultKind[])[] = [
  ['slow provider', 'busy provider', 'stop process', 'suspend process', 'kill process', 'kill redis', 'stop redis'],
  ['slow provider', 'flush', 'stop process', 'suspend process', 'evict entry', 'evict record'],
  ['slow provider', 'promote', 'stop process', 'kill redis', 'busy provider', 'flush'],
  ['cut process', 'kill redis', 'stop redis', 'stop process', 'suspend process', 'slow provider']
]

/** Returns the schedule of a seed. Half of the schedules have one kind of fault, and the others combine several. */
export function scheduleOf(seed: number, sessionStore: Schedule['sessionStore'] = 'cookie'): Schedule {
  const number = Math.floor(seed / 2)
  const mode = number % 2 === 0 ? 'single' : 'dual'
  const list = seed % 2 === 0 ? SINGLE : MIXED
  return { seed, mode, sessionStore, kinds: list[Math.floor(number / 2) % list.length] as readonly FaultKind[] }
}

const log = pino({ level: 'silent' })
const keyring = createKeyring(['a secret that only the simulation has'])
const recordSealer = keyring.sealer('stored session')

export async function simulate(schedule: Schedule, safeguard?: Safeguard): Promise<SimulationResult> {
  const { seed, mode } = schedule
  const kinds = safeguard?.kinds ?? schedule.kinds
  const sessionStore = safeguard?.sessionStore ?? schedule.sessionStore
  const keepsSessionsInRedis = sessionStore === 'redis'
  const world = createWorld(seed)
  const times: ScriptTimes = {
    entryMs: 172_800_000,
    loginMs: 900_000,
    keepMs: 60_000,
    lockMs: LOCK_MS,
    settleMs: SETTLE_MS,
    ...safeguard?.times
  }
  const provider = createProvider(world, world.between(3, 8), safeguard?.queue)
  const onSaved = (id: string, rev: number, text: string) => {
    const plaintext = recordSealer.open(text, `${id} ${rev}`, keepsSessionsInRedis ? keyOf(id) : undefined)
    if (plaintext) provider.stored((JSON.parse(plaintext.toString()) as SessionRecord).fields.refresh_token)
  }
  const redis = createRedis(world, times, {
    onSaved,
    ignored: safeguard?.ignoredScripts ?? [],
    dropsMessages: safeguard?.dropsMessages ?? false
  })
  const servers: SimulatedServer[] = []
  const activeMs = kinds.some(kind => kind.endsWith('for long')) ? 3 * ACTIVE_MS : ACTIVE_MS
  const marginSeconds = world.random() < 0.3 ? 2 : 0
  let started = 0
  function startServer(): void {
    const process = world.createProcess(`process ${++started}`)
    const sabotage = safeguard ?? {}
    const shared = { provider, redis, keyring, times, log, marginSeconds, sabotage }
    servers.push(createServer({ process, modeName: mode, sessionStore, ...shared }))
  }
  for (let index = 0; index < PROCESSES; index++) startServer()

  const losesData = kinds.some(kind => ['flush', 'evict entry', 'promote'].includes(kind))
  const isSteady = kinds.every(kind => kind === 'slow provider' || kind === 'busy provider' || kind === 'evict record')
  // After a promotion, the process that made the last writes must be able to store them again.
  const losesSessions = kinds.some(kind => ['flush', 'evict entry', 'evict record', 'promote'].includes(kind))
  const people = Array.from({ length: PEOPLE }, (_, index) =>
    createPerson({
      world,
      name: `person${index}`,
      grantOf: provider.grantOf,
      servers,
      // After a loss of data, a session that only a gateway has used may be lost, and so may one whose old copy comes first.
      gatewayShare: losesData ? 0 : index === 1 ? 1 : 0.1,
      copyShare: losesData ? 0 : index === 2 ? 0.3 : 0,
      logoutsAreSafe: isSteady,
      keepMs: times.keepMs,
      // The requests that a process has begun before a stop of more than a minute come too late. Every cookie of a session in
      // Redis leads to the newest record.
      cookiesAreKnown:
        !losesData &&
        !kinds.includes('evict record') &&
        (keepsSessionsInRedis || (activeMs === ACTIVE_MS && index !== 2)),
      sessionsAreKept: !losesSessions || kinds.every(kind => kind === 'promote')
    })
  )
  await world.run(4000)
  const logins = people.map(person => person.logIn(servers[0] as SimulatedServer))
  // A login may wait in the queue of the provider.
  await world.run(20_000)
  if ((await Promise.all(logins)).includes(false)) throw new Error(`seed ${seed}: a login failed before any fault`)

  const faults = startFaults({
    world,
    kinds,
    servers,
    startServer,
    people,
    redis,
    provider,
    keepsSessionsInRedis
  })
  for (const person of people) {
    const visit = () => {
      person.openPage()
      world.after(world.between(0, 2 * PAGE_EVERY_MS), visit)
    }
    visit()
  }
  const [leaver] = people
  world.after(world.between(0, activeMs), () => {
    const server = servers.find(({ process }) => process.isAlive && !process.isStopped)
    if (server) leaver?.logOut(server)
  })
  await world.run(activeMs)
  faults.heal()
  await world.run(HEALING_MS)

  const violations = people.flatMap(({ violations }) => violations)
  const excuses: string[] = []
  for (const person of people) {
    const grant = person.grant()
    if (person === leaver || !grant) continue
    const signedIn = await returns(person.name)
    const problem = signedIn
      ? grant.reused.length > 0 && `${person.name}: a refresh token was used twice (${grant.reused.join(', ')})`
      : `${person.name} has lost the login${grant.reused.length > 0 ? ', because a refresh token was used twice' : ''}`
    if (problem && grant.excuse === undefined) violations.push(problem)
    else if (problem) excuses.push(grant.excuse as string)
  }
  return { schedule, violations, excuses, notes: world.notes, calls: provider.calls() }

  /** Lets a person open pages until one shows that the person is signed in. */
  async function returns(name: string): Promise<boolean> {
    const person = people.find(person => person.name === name)
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const server = servers[attempt % servers.length] as SimulatedServer
      let answer: boolean | undefined
      void person?.isSignedIn(server).then(isSignedIn => {
        answer = isSignedIn
      })
      await world.run(6000)
      if (answer === true) return true
      if (!person?.cookie()) return false
    }
    return false
  }
}
