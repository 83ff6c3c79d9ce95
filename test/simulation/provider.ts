// A strict identity provider: a second use of a refresh token ends the login. It knows who sent each token, and so whether a
// second use is one of the accepted exceptions (SECURITY.md).

import type { UserInfo } from '#src/provider/id-token.js'
import { OAuthError, ProviderError } from '#src/provider/provider-error.js'
import type { TokenSet } from '#src/provider/token-set.js'
import { TIMES } from '#src/sessions/transitions.js'
import type { Replica, Simulation } from './simulation.js'
import type { World } from './world.js'

/** One request with a refresh token. */
interface Use {
  readonly replica: Replica
  readonly leaseAt: number
  readonly sentAt: number
  answeredAt?: number
  isLost?: boolean
  /** When the new token of the response was stored. */
  storedAt?: number
}

interface Grant {
  current: number
  isDead: boolean
  /** Why the loss of this login is accepted. */
  excuse?: string
  readonly uses: Map<number, Use>
  /** The request that brought each token. */
  readonly origins: Map<number, Use>
  /** True if the account may no longer sign in. */
  isRemoved: boolean
  /**
   * The number of the first token whose response showed that the account may have been removed. Nobody may use its access token,
   * or a later one.
   */
  withheldFrom: number
  /** The ambiguous refusals since the last success, and the time of the first one. */
  refused: { since: number; times: number } | undefined
  /** Until this time, the provider blames the client for each refresh token of this login. */
  blamedUntil: number
}

interface RefreshRequest {
  readonly refreshToken: string
  /** True for the second request of dual mode. */
  readonly isSecond: boolean
  readonly timeoutMs: number
}

export interface SimulatedProvider {
  slowUntil: number
  busyUntil: number
  failingUntil: number
  refusingUntil: number
  readonly lifetimeSeconds: number
  calls: number
  /** Called when a token request has been sent. */
  onSent: ((replica: Replica) => void) | undefined
  /** Called when a request for the user info has been sent. */
  onUserInfo: ((replica: Replica) => void) | undefined
  /** Called when a new refresh token was stored for the first time. */
  onFirstStored: ((replica: Replica) => void) | undefined
  readonly grants: Map<string, Grant>
  /** Starts a login and returns its first refresh token. */
  begin(id: string): string
  stored(id: string, refreshToken: string): void
  refresh(replica: Replica, request: RefreshRequest): Promise<TokenSet>
  userInfo(replica: Replica, accessToken: string): Promise<UserInfo>
  /** Returns why a loss of data between these times may have cost a login. */
  excuseOfLoss(from: number, to: number, replicas?: readonly Replica[]): string | undefined
}

export const ISSUER = 'https://idp.example'
export const CLIENT_ID = 'client'
/** The claim that an account needs. It is in the user info, and never in an ID token. */
export const ACCESS_CLAIM = { claim: 'groups', value: 'admins', text: 'groups=admins' }
const ID_TOKEN_SHARE = 0.6
const BUSY_SECONDS = 3
const RESPONSE_LOSS = 0.03

export function createProvider(world: World, of: () => Simulation): SimulatedProvider {
  function excuseOf(first: Use, second: Use, grant: Grant, token: number): string | undefined {
    const { replica, leaseAt } = first
    const now = second.sentAt
    if (first.isLost) return 'the response was lost'
    if (first.storedAt === undefined && !replica.process.isAlive) {
      return 'the owner was killed before its result was stored'
    }
    const answeredAt = first.answeredAt ?? (now - leaseAt > TIMES.requestMs ? Number.POSITIVE_INFINITY : now)
    if (answeredAt - leaseAt > TIMES.requestMs) return 'no response within 60 s'
    const tookTooLong = (first.storedAt ?? Number.POSITIVE_INFINITY) - leaseAt >= TIMES.leaseMs - 1000
    if (tookTooLong && now - leaseAt >= TIMES.leaseMs - 1000 && replica.wasTroubledBetween(leaseAt, now)) {
      return 'the owner was stopped or cut off for the life of its lease'
    }
    // Only the process that sent the token before, and the one that got it from the provider, count.
    const origin = grant.origins.get(token)?.replica
    return excuseOfLoss(leaseAt - 1000, now, origin ? [replica, origin] : [replica])
  }

  function excuseOfLoss(from: number, to: number, replicas: readonly Replica[] = of().replicas): string | undefined {
    for (const at of of().losses) {
      if (at < from || at > to) continue
      for (const replica of replicas) {
        const trouble = replica.wasTroubledBetween(at - 2000, to)
        if (trouble) return `data was lost, and a process with this fault knew it: ${trouble.kind}`
      }
    }
    return undefined
  }

  const provider: SimulatedProvider = {
    slowUntil: 0,
    busyUntil: 0,
    failingUntil: 0,
    refusingUntil: 0,
    lifetimeSeconds: world.between(3, 8),
    calls: 0,
    onSent: undefined,
    onUserInfo: undefined,
    onFirstStored: undefined,
    grants: new Map(),
    begin(id) {
      const uses = { uses: new Map(), origins: new Map() }
      const access = { isRemoved: false, withheldFrom: Number.POSITIVE_INFINITY }
      provider.grants.set(id, { current: 1, isDead: false, refused: undefined, blamedUntil: 0, ...uses, ...access })
      return `${id}:1`
    },
    stored(id, refreshToken) {
      const origin = provider.grants.get(id)?.origins.get(Number(refreshToken.split(':')[1]))
      if (!origin || origin.storedAt !== undefined) return
      origin.storedAt = world.now()
      provider.onFirstStored?.(origin.replica)
    },
    excuseOfLoss,
    userInfo(replica, accessToken) {
      const { process } = replica
      world.note(`${process.name} asks for the user info of ${accessToken}`)
      provider.onUserInfo?.(replica)
      return new Promise(resolve => {
        world.after(world.between(5, 60), () => {
          const sub = accessToken.split(/[ :]/)[1] ?? ''
          const userInfo = { sub, ...(!provider.grants.get(sub)?.isRemoved && { groups: ACCESS_CLAIM.value }) }
          const delayMs = world.random() < 0.3 ? world.between(300, 5000) : world.between(5, 60)
          world.after(delayMs, () => resolve(userInfo), { process, kind: 'input' })
        })
      })
    },
    refresh(replica, { refreshToken, isSecond, timeoutMs }) {
      const [id = '', text] = refreshToken.split(':')
      const token = Number(text)
      const grant = provider.grants.get(id) as Grant
      const { process } = replica
      const input = { process, kind: 'input' } as const
      const use: Use = { replica, leaseAt: world.now() - (TIMES.requestMs - timeoutMs), sentAt: world.now() }
      provider.calls++
      world.note(`${process.name} sends ${refreshToken}`)
      provider.onSent?.(replica)

      return new Promise((resolve, reject) => {
        let hasArrived = false
        let isDone = false
        const answer = (delayMs: number, settle: () => void) => {
          const receive = () => {
            hasArrived = true
            if (isDone) return
            isDone = true
            use.answeredAt ??= world.now()
            settle()
          }
          world.after(delayMs, receive, input)
        }
        const fail = (delayMs: number, error: Error) => answer(delayMs, () => reject(error))
        const abort = () => {
          if (isDone || hasArrived) return
          isDone = true
          if (use.answeredAt === undefined) use.isLost = true
          reject(new ProviderError('token', 'timeout', 'no complete response in time'))
        }
        // A response that arrived while the process was stopped is used, although the timer fires first.
        const lateMs = of().safeguard.dropsLateResponses ? 0 : 5
        const timeOut = () => (lateMs === 0 ? abort() : world.after(lateMs, abort, input))
        world.after(Math.max(0, timeoutMs), timeOut, { process, kind: 'timer' })

        world.after(world.between(5, 60), () => {
          const delayMs = world.between(5, 60)
          const status = (code: number, retryAfterSeconds?: number) =>
            new ProviderError('token', 'invalid_response', `it responded with ${code}`, {
              status: code,
              retryAfterSeconds
            })
          if (world.now() < provider.busyUntil && world.random() < 0.7) {
            fail(delayMs, status(429, BUSY_SECONDS))
            return
          }
          if (world.now() < provider.failingUntil && world.random() < 0.7) {
            fail(delayMs, status(500))
            return
          }
          if (world.now() < provider.refusingUntil) {
            const { since, times } = grant.refused ?? { since: world.now(), times: 0 }
            grant.refused = { since, times: times + 1 }
            if (times >= 2 && world.now() - since >= 30_000) grant.excuse ??= 'the provider refused the token for 30 s'
            fail(delayMs, oauthError('invalid_request'))
            return
          }
          if (world.now() < grant.blamedUntil) {
            fail(delayMs, oauthError('unauthorized_client'))
            return
          }
          const first = grant.uses.get(token)
          if (first) {
            const excuse = excuseOf(first, use, grant, token) ?? grant.excuse
            world.note(`${refreshToken} is used again by ${process.name}: ${excuse ?? 'no accepted reason'}`)
            if (excuse === undefined) of().violations.add(`${refreshToken} was used twice`)
            else grant.excuse ??= excuse
            grant.isDead = true
          }
          grant.uses.set(token, use)
          const isSlow = world.now() < provider.slowUntil
          world.after(isSlow ? world.between(200, 25_000) : world.between(30, 400), () => {
            if (grant.isDead || token !== grant.current) {
              grant.isDead = true
              fail(delayMs, oauthError('invalid_grant'))
              return
            }
            grant.refused = undefined
            grant.current++
            grant.origins.set(grant.current, use)
            if (of().has('lost response') && world.random() < RESPONSE_LOSS) {
              use.isLost = true
              fail(1000, new ProviderError('token', 'unreachable', 'connection failed'))
              return
            }
            use.answeredAt = world.now() + 60
            const next = `${id}:${grant.current}`
            const expiresIn = provider.lifetimeSeconds
            const tokens = { accessToken: accessTokenOf(next), refreshToken: next, expiresIn, scope: undefined }
            const hasIdToken = of().schedule.isGuarded && world.random() < ID_TOKEN_SHARE
            if (hasIdToken && grant.isRemoved && !isSecond) {
              grant.withheldFrom = Math.min(grant.withheldFrom, grant.current)
            }
            answer(delayMs, () => resolve({ ...tokens, idToken: hasIdToken ? idTokenOf(id) : undefined }))
          })
        })
      })
    }
  }
  return provider
}

/** Returns the access token of the response that brought a refresh token. */
export function accessTokenOf(refreshToken: string): string {
  return `access ${refreshToken}`
}

function idTokenOf(sub: string): string {
  const claims = { iss: ISSUER, sub, aud: CLIENT_ID }
  return `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.signature`
}

function oauthError(error: string): OAuthError {
  return new OAuthError({ error, status: 400, endpoint: 'token' })
}
