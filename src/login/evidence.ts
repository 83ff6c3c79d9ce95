/**
 * Decides when refusals of a refresh token prove that the token is invalid. A provider may also refuse a valid token for a while: a
 * firewall after a flood of invented codes, a replica with another client secret, an outage of one tenant. So a refusal counts only
 * if the same process sees, with the same credentials, that other users are not refused. All times are on the clock of the store.
 */
import type { Requester } from '../base/fair-queue.js'
import { OAuthError, ProviderError } from '../provider/provider-error.js'
import type { RefusalSeries, Suspicion } from '../sessions/index.js'

const MINUTE_MS = 60_000
const DAY_MS = 1440 * MINUTE_MS

interface Sighting extends Requester {
  readonly at: number
  readonly seenBy: string
}

/** A refusal of a refresh token. */
export interface SeenRefusal {
  /** As in `provider/meaning.ts`. */
  readonly meaning: 'ambiguous' | 'weak'
  /** The status and code. */
  readonly what: string
  /** Names this process and the credentials that it sent. */
  readonly seenBy: string
  /** The series in the cell to which the refusal belongs. */
  readonly series: string
}

/**
 * Returns how the error of a token request refuses the refresh token. Undefined if it does not, or if the token is certainly invalid.
 * @param seenBy names this process and the credentials that it sent
 */
export function refusalIn(error: unknown, seenBy: string): SeenRefusal | undefined {
  if (!(error instanceof ProviderError)) return undefined
  const { meaning } = error
  if (meaning === 'ambiguous') return { meaning, what: '', seenBy, series: meaning }
  if (meaning !== 'weak') return undefined
  const what = `${error.status} ${error instanceof OAuthError ? (error.gatewayCode ?? error.error) : ''}`
  return { meaning, what, seenBy, series: `${seenBy} ${what}` }
}

// Three other users prove something, besides the user whose token is refused.
const MAX_SUCCESSES = 4
// The user whose token is refused, and one other.
const MAX_REFUSED = 2
const MAX_COUNTED = 100

/** Creates what this process remembers of refreshes. Its size does not depend on the number of users. */
export function createEvidence() {
  let refreshed: readonly Sighting[] = []
  const refused = new Map<string, readonly Sighting[]>()
  const recoveries = new Map<string, number>()
  const clientRejections = new Set<string>()

  return {
    /** Notes that a token request of a login succeeded. */
    loggedIn(): void {
      clientRejections.clear()
    },
    /**
     * Notes that a session was refreshed.
     * @param suspect the earlier refusals of its refresh token, which were temporary
     */
    refreshed(by: Requester, seenBy: string, suspect: Suspicion | undefined, at: number): void {
      clientRejections.clear()
      refreshed = newestFirst(refreshed, { ...by, at, seenBy }, MAX_SUCCESSES)
      for (const series of Object.keys(suspect ?? {})) recoveries.set(series.slice(series.indexOf(' ') + 1), at)
    },
    /**
     * Notes a refusal of a session.
     * @param series the refusals of its refresh token, with this one
     * @param previous the time of the refusal before it
     * @returns true if the refusals prove that the refresh token is invalid
     */
    refused(
      { meaning, what, seenBy }: SeenRefusal,
      by: Requester,
      { since, last, refusals }: RefusalSeries,
      previous = last
    ): boolean {
      const ms = last - since
      const isLong = ms >= 10 * MINUTE_MS
      const others = refreshed.filter(({ at }) => at > since)
      // If nobody is refreshed, the provider may be refusing all users because of a temporary fault, so the server waits longer
      // before it signs all of them out.
      if (meaning === 'ambiguous') {
        const isOther = ({ session }: Sighting) => session !== by.session
        return refusals >= 3 && (isLong || (ms >= 30_000 && others.some(isOther)))
      }
      const earlier = refused.get(what) ?? []
      refused.set(what, newestFirst(earlier, { ...by, at: last, seenBy }, MAX_REFUSED))
      // Pages that ask rarely are refused rarely.
      const recently = Math.min(previous, last - 10 * MINUTE_MS)
      const areOthersRefused = earlier.some(({ user, at }) => user !== by.user && at > recently)
      const otherUsers = others.filter(other => other.user !== by.user && other.seenBy === seenBy).length
      const recoveredAt = recoveries.get(what) ?? Number.NEGATIVE_INFINITY
      const hasRecovered = recoveredAt > Math.min(since, last - DAY_MS)
      return refusals >= 5 && isLong && otherUsers >= 3 && !areOthersRefused && !hasRecovered
    },
    /**
     * Notes that the provider rejected the client in a token request.
     * @param user undefined for a login, whose user is not known. All logins count as one user, because anybody can send made-up
     *   codes
     */
    clientRejected(user = ''): void {
      if (clientRejections.size < MAX_COUNTED) clientRejections.add(user)
    },
    /** Returns the number of users for whom the provider rejected the client since the last token request that succeeded, at most 100. */
    clientRejections: (): number => clientRejections.size
  }
}

export type Evidence = ReturnType<typeof createEvidence>

/** Adds a sighting to the newest ones, of which each user has one. */
function newestFirst(list: readonly Sighting[], newest: Sighting, max: number): readonly Sighting[] {
  return [newest, ...list.filter(({ user }) => user !== newest.user)].slice(0, max)
}
