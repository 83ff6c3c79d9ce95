// A simulated identity provider. Each refresh token can be used once. If a token is used again, the whole login ends.
import type { IdentityProvider } from '#src/provider/client.js'
import { OAuthError, ProviderError } from '#src/provider/errors.js'
import { APS } from '#src/provider/metadata.js'
import { quirksOf } from '#src/provider/quirks.js'
import type { TokenSet } from '#src/provider/token-set.js'
import { wait } from '#src/support/clock.js'
import { TimeLimitError, within } from '#src/support/within.js'
import type { SimulatedProcess, World } from './world.js'

/** A login at the provider. */
export interface Grant {
  readonly name: string
  /** Why this login may be lost. Undefined if it must survive. */
  excuse: string | undefined
  /** The refresh tokens that were used twice. */
  readonly reused: string[]
  isEnded: boolean
  isRevoked: boolean
}

export interface SimulatedProvider {
  /** Returns the client of a process. */
  clientOf(process: SimulatedProcess): IdentityProvider
  /** Returns the grant of an authorization code. */
  grantOf(code: string): Grant | undefined
  readonly grants: readonly Grant[]
  /** Call when this refresh token has been stored, so it is not lost if its process is killed. */
  stored(refreshToken: string): void
  /**
   * Excuses all logins whose newest tokens only this process has, or for which it waits.
   * @param sentBefore only requests that were sent before this time count
   */
  excuseUnstored(process: SimulatedProcess, excuse: string, sentBefore?: number): void
  /** Returns the refresh token of a login that is valid now, and the process that has requested it. */
  newest(grant: Grant): { readonly refreshToken: string; readonly process: SimulatedProcess } | undefined
  /** The longest time in milliseconds that a response takes. */
  slowness: number
  /** The probability of an error before the refresh token is used. */
  failures: number
  /** The number of token requests that the provider accepts in a minute. It answers further ones with 429. */
  callsPerMinute: number
  /** The number of token requests. */
  calls(): number
  /** The number of token requests that were answered with 429 because of `callsPerMinute`. */
  rejected(): number
}

/** A token request whose new tokens are not stored yet. */
interface Request {
  readonly process: SimulatedProcess
  readonly grant: Grant
  readonly sentAt: number
  refreshToken: string | undefined
}

const PAUSE_SECONDS = 2
const MINUTE_MS = 60_000

/** The queue in which a process waits before it sends a token request. */
export interface ProviderQueue {
  /** The share of the requests that wait. */
  readonly share: number
  readonly maxMs: number
}

export function createProvider(
  world: World,
  lifetimeSeconds: number,
  queue: ProviderQueue = { share: 0.2, maxMs: 8000 }
): SimulatedProvider {
  const grants = new Map<string, Grant>()
  const valid = new Map<string, Grant>()
  const spent = new Map<string, Grant>()
  const requests = new Set<Request>()
  const newest = new Map<Grant, { readonly refreshToken: string; readonly process: SimulatedProcess }>()
  let issued = 0
  let calls = 0
  let rejected = 0
  let minute = 0
  let callsOfMinute = 0

  /** Counts a call. Returns the seconds until the next minute if the calls of this minute are used up. */
  function overQuotaSeconds(): number | undefined {
    const now = world.now()
    if (Math.floor(now / MINUTE_MS) > minute) {
      minute = Math.floor(now / MINUTE_MS)
      callsOfMinute = 0
    }
    if (++callsOfMinute <= provider.callsPerMinute) return undefined
    rejected++
    return Math.ceil((MINUTE_MS - (now % MINUTE_MS)) / 1000)
  }

  function issue(grant: Grant): TokenSet {
    const refreshToken = `refresh-${++issued}`
    valid.set(refreshToken, grant)
    return {
      accessToken: `access-${issued}`,
      refreshToken,
      expiresIn: lifetimeSeconds,
      scope: undefined,
      idToken: undefined
    }
  }

  function use(token: string): TokenSet {
    const grant = valid.get(token)
    if (!grant || grant.isEnded) {
      const owner = spent.get(token)
      if (owner) {
        owner.reused.push(token)
        owner.isEnded = true
      }
      throw new OAuthError({ error: 'invalid_grant', status: 400, endpoint: 'token', retryAfterSeconds: undefined })
    }
    valid.delete(token)
    spent.set(token, grant)
    return issue(grant)
  }

  const provider: SimulatedProvider = {
    grants: [],
    slowness: 400,
    failures: 0,
    callsPerMinute: Number.POSITIVE_INFINITY,
    grantOf: code => grants.get(code),
    stored(refreshToken) {
      for (const request of requests) if (request.refreshToken === refreshToken) requests.delete(request)
    },
    excuseUnstored(process, excuse, sentBefore = Number.POSITIVE_INFINITY) {
      for (const request of requests) {
        if (request.process === process && request.sentAt < sentBefore) request.grant.excuse ??= excuse
      }
    },
    newest: grant => newest.get(grant),
    calls: () => calls,
    rejected: () => rejected,
    clientOf(process) {
      /** Sends a request. The provider works on it even if the process is stopped or gives up. */
      async function request(timeoutMs: number, grant: Grant | undefined, work: () => TokenSet): Promise<TokenSet> {
        calls++
        const sent: Request | undefined = grant && { process, grant, sentAt: world.now(), refreshToken: undefined }
        if (sent) requests.add(sent)
        const isBusy = world.random() < provider.failures
        const pauseSeconds = overQuotaSeconds() ?? (isBusy ? PAUSE_SECONDS : undefined)
        const response = new Promise<TokenSet>((resolve, reject) => {
          world.after(world.between(1, provider.slowness / 2), () => {
            let answer: () => void
            try {
              if (pauseSeconds !== undefined) throw busy(pauseSeconds)
              const tokens = work()
              const { refreshToken } = tokens
              if (sent) sent.refreshToken = refreshToken
              if (grant && refreshToken) newest.set(grant, { refreshToken, process })
              answer = () => resolve(tokens)
            } catch (error) {
              answer = () => reject(error)
            }
            world.after(world.between(10, provider.slowness / 2), answer, { process, kind: 'input' })
          })
        })
        try {
          const tokens = await within(timeoutMs, response, process.clock)
          return tokens
        } catch (error) {
          if (error instanceof TimeLimitError) {
            if (grant) grant.excuse ??= 'the provider answered after the time limit'
            throw new ProviderError('token', 'timeout', 'no complete response in time')
          }
          if (sent) requests.delete(sent)
          throw error
        }
      }

      return {
        metadata: async () => ({
          ...APS,
          issuer: undefined,
          jwksUri: undefined,
          issParameterSupported: false,
          scopesSupported: undefined,
          quirks: quirksOf(APS)
        }),
        async enterTokenQueue() {
          // Sometimes many other requests are in the queue.
          if (world.random() < queue.share) await wait(process.clock, world.between(0, queue.maxMs))
          return () => {}
        },
        authorizationCodeGrant({ code, timeoutMs = 60_000 }) {
          const grant: Grant = { name: code, excuse: undefined, reused: [], isEnded: false, isRevoked: false }
          grants.set(code, grant)
          ;(provider.grants as Grant[]).push(grant)
          return request(timeoutMs, grant, () => issue(grant))
        },
        refreshTokenGrant: ({ refreshToken, timeoutMs = 60_000 }) =>
          request(timeoutMs, valid.get(refreshToken) ?? spent.get(refreshToken), () => use(refreshToken)),
        async revokeRefreshToken(token) {
          const grant = valid.get(token) ?? spent.get(token)
          if (grant) grant.isRevoked = true
          if (grant) grant.isEnded = true
        },
        userInfo: async () => ({}),
        signingKeys: async () => ({ keys: [] }),
        authorizationUrl: async () => '',
        endSessionUrl: async () => undefined,
        replaceCredentials() {}
      }
    }
  }
  return provider
}

function busy(retryAfterSeconds: number): ProviderError {
  return new ProviderError('token', 'unusable', 'it answered 429', { status: 429, retryAfterSeconds })
}
