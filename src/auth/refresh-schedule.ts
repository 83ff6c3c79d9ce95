import { createHash } from 'node:crypto'
import type { SessionFields, SessionRecord } from '../session/record.js'

export interface RefreshScheduleParts {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly marginSeconds: number
  readonly spreadSeconds: number
}

/** Decides when the tokens of a session have to be refreshed. */
export interface RefreshSchedule {
  /** True when `expires_at` is in the past (contract section 5.1, step 3.2). */
  hasExpired(fields: SessionFields): boolean
  /** True when the tokens have expired, or expire so soon that they should be refreshed early. */
  isDue(record: SessionRecord): boolean
}

const CLOCK_LEEWAY_MS = 300_000

export function createRefreshSchedule({ now, marginSeconds, spreadSeconds }: RefreshScheduleParts): RefreshSchedule {
  function earlyRefreshMs(record: SessionRecord): number {
    const { expires_at = 0 } = record.fields
    const spreadMs = spreadSeconds > 0 ? spreadFractionOf(record) * spreadSeconds * 1000 : 0
    // The limit is half of the lifetime. With a larger value, nearly every request would refresh.
    return Math.min(marginSeconds * 1000 + spreadMs, Math.max(0, (expires_at - record.issuedAt) / 2))
  }

  return {
    hasExpired: ({ expires_at = 0 }) => expires_at < now(),
    isDue(record) {
      const leftMs = (record.fields.expires_at ?? 0) - now()
      // An issue time in the future means that the clock was set back since. The real expiry is then unknown.
      if (leftMs < 0 || record.issuedAt > now() + CLOCK_LEEWAY_MS) return true
      return leftMs < (marginSeconds + spreadSeconds) * 1000 && leftMs < earlyRefreshMs(record)
    }
  }
}

/** Derives a number in [0, 1) from the session's id and expiry. All replicas get the same number for a session. */
function spreadFractionOf({ id, fields }: SessionRecord): number {
  const hash = createHash('sha256').update(`${id} ${fields.expires_at}`).digest()
  return hash.readUInt32BE(0) / 2 ** 32
}
