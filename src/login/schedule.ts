import { createHash } from 'node:crypto'
import type { Config } from '../config/settings.js'
import type { SessionFields, SessionRecord } from '../cookie/session-record.js'

/** The settings `refresh`. */
export type RefreshTimes = Config['refresh']

const CLOCK_LEEWAY_MS = 300_000

export type RefreshSchedule = ReturnType<typeof createRefreshSchedule>

/**
 * Decides when the tokens of a session have to be refreshed.
 * @param now returns milliseconds since the epoch
 */
export function createRefreshSchedule({ beforeExpirySeconds, jitterSeconds }: RefreshTimes, now: () => number) {
  function earlyRefreshMs(record: SessionRecord): number {
    const { expires_at } = record.fields
    const jitterMs = jitterSeconds > 0 ? jitterFractionOf(record) * jitterSeconds * 1000 : 0
    // An early refresh is never due before half of the lifetime has passed. Otherwise nearly every request would refresh
    // short-lived tokens.
    return Math.min(beforeExpirySeconds * 1000 + jitterMs, Math.max(0, (expires_at - record.issuedAt) / 2))
  }

  return {
    hasExpired: ({ expires_at }: SessionFields): boolean => expires_at < now(),
    /**
     * True if the tokens have expired or should be refreshed early, if only one of the two tokens has been refreshed, or if the
     * access list has not been checked since the last token response.
     */
    isDue(record: SessionRecord): boolean {
      if (record.kind === 'half-refreshed' || record.isUnchecked) return true
      const remainingMs = record.fields.expires_at - now()
      // If the issue time is in the future, the clock has been set back since. Then `expires_at` is wrong, too, so refresh now.
      if (remainingMs < 0 || record.issuedAt > now() + CLOCK_LEEWAY_MS) return true
      return remainingMs < (beforeExpirySeconds + jitterSeconds) * 1000 && remainingMs < earlyRefreshMs(record)
    }
  }
}

/** Derives a number in [0, 1) from the id and the expiry of a session, so that all replicas get the same number. */
function jitterFractionOf({ id, fields }: SessionRecord): number {
  const hash = createHash('sha256').update(`${id} ${fields.expires_at}`).digest()
  return hash.readUInt32BE(0) / 2 ** 32
}
