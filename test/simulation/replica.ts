// A process of the server: the production code of the store and of refreshes, with simulated clocks and connections.
import { createAccess } from '#src/login/access.js'
import { createEvidence } from '#src/login/evidence.js'
import { createDualMode, createSingleMode } from '#src/login/mode.js'
import { createRefreshes } from '#src/login/refreshes.js'
import type { IdentityProvider } from '#src/provider/client.js'
import { createSessions } from '#src/sessions/create-sessions.js'
import { createProcessMemory } from '#src/sessions/memory.js'
import type { Lease, Owner } from '#src/sessions/transitions.js'
import { ACCESS_CLAIM, CLIENT_ID, ISSUER } from './provider.js'
import type { Replica, Simulation, Trouble } from './simulation.js'

interface RefreshTokenRequest {
  readonly refreshToken: string
  readonly scope: string
  readonly timeoutMs?: number
}

const LIFETIME_MS = 48 * 3_600_000
const RETRY_MS = 1000
const PUBLIC_SCOPE = 'viewables:read'

const silent = { debug() {}, info() {}, warn() {}, error() {} }
export const requestLog = () => silent as never

/** Starts a process at a host slot, and adds it to the simulation. */
export function startReplica(simulation: Simulation, hostSlot: string): Replica {
  const { world, replicas, redis, provider, schedule, safeguard, recoveryMs } = simulation
  const number = replicas.length + 1
  const process = world.createProcess(`process ${number}`)
  const clock = safeguard.clock?.(process.clock, number) ?? process.clock
  const troubles: Trouble[] = []
  const beforeExpirySeconds = schedule.seed % 5 < 2 ? 1.5 : 0
  const base = {
    number,
    hostSlot,
    owner: `owner ${number}`,
    process,
    clock,
    startedAt: world.now(),
    troubles,
    listens: true,
    isCut: false,
    isConnected: redis.master.isUp && !redis.master.isStopped,
    redis: redis.master,
    connection: 0,
    connectedAt: process.clock.monotonic() as number | undefined,
    since: undefined as number | undefined,
    running: 0,
    wasTroubledBetween: (from: number, to: number) => troubles.find(trouble => trouble.from < to && trouble.to > from)
  }
  const replica = base as unknown as Replica
  const me = (): Owner =>
    replica.since === undefined || safeguard.namesNoHostSlot
      ? { owner: replica.owner }
      : { owner: replica.owner, hostSlot, since: replica.since }
  const hostSlots = {
    async isDead({ hostSlot, since }: Lease): Promise<boolean> {
      if (hostSlot === undefined || since === undefined) return false
      const newest = await redis.readHostSlot(replica, hostSlot)
      return newest !== undefined && newest > since
    }
  }
  const memory = createProcessMemory(clock, LIFETIME_MS)
  const created = createSessions({
    cells: redis.cellsOf(replica),
    memory: safeguard.memory?.(memory) ?? memory,
    hostSlots,
    clock,
    me,
    recoveryMs,
    connectedAt: () => (safeguard.skipsRecovery ? undefined : replica.connectedAt),
    publish: message => redis.publish(replica, message),
    revoke() {},
    lifetimeMs: LIFETIME_MS
  })
  const sessions = safeguard.sessions?.(created, replica) ?? created
  const idp = {
    async inTokenQueue<T>(_queue: unknown, _options: unknown, send: () => Promise<T>) {
      const longestMs = world.random() < 0.2 ? 2000 : 20
      await new Promise<void>(resolve => process.clock.after(world.between(0, longestMs), resolve))
      return send()
    },
    refreshTokenGrant: ({ refreshToken, scope, timeoutMs = 0 }: RefreshTokenRequest) =>
      provider.refresh(replica, { refreshToken, isSecond: scope === PUBLIC_SCOPE, timeoutMs }),
    metadata: async () => ({ userinfoEndpoint: `${ISSUER}/userinfo`, quirks: {} }),
    endpoint: async () => `${ISSUER}/userinfo`,
    userInfo: (accessToken: string) => provider.userInfo(replica, accessToken),
    revokeRefreshToken: async () => {},
    credentialsId: () => replica.owner
  } as unknown as IdentityProvider
  const modeParts = { idp, clientId: CLIENT_ID, keepsIdToken: false, now: sessions.now }
  const mode =
    schedule.mode === 'single'
      ? createSingleMode({ scopes: ['data:read'] }, modeParts)
      : createDualMode(
          { internalTokenScopes: ['data:read', PUBLIC_SCOPE], publicTokenScopes: [PUBLIC_SCOPE] },
          modeParts
        )
  const access = schedule.isGuarded ? createAccess({ allow: [ACCESS_CLAIM] }, idp) : undefined
  const times = { beforeExpirySeconds, jitterSeconds: 0, timeoutSeconds: 10 }
  const refreshes = createRefreshes({ mode, idp, sessions, clock, access, evidence: createEvidence(), ...times })
  Object.assign(replica, { sessions, refreshes })
  replicas.push(replica)
  if (!replica.isConnected) redis.connect(replica)
  takeHostSlot(simulation, replica)
  return replica
}

/** Gets the socket of the host slot, when the process that has it has ended. */
function takeHostSlot(simulation: Simulation, replica: Replica): void {
  const { world, replicas, redis, startedAt, safeguard } = simulation
  const { hostSlot, process } = replica
  const holder = replicas.find(
    other => other.hostSlot === hostSlot && other.since !== undefined && other.process.isAlive
  )
  if (holder && !safeguard.sharesHostSlots) {
    const retry = () => takeHostSlot(simulation, replica)
    world.after(RETRY_MS, retry, { process, kind: 'timer' })
    return
  }
  if (!replica.listens) return
  replica.since = world.now() - startedAt + replica.number / 1000
  redis.storeHostSlot(replica, hostSlot, replica.since).catch(() => {})
}
