/**
 * Stores the session in an encrypted cookie. With `session.store: redis`, the cookie contains only the id and the key of the
 * session, and the session is in Redis (`src/sessions/`). A cookie that cannot be decrypted is treated like a missing cookie, so a
 * client cannot cause an exception. The code says "seal" for encrypting with authentication, and "open" for decrypting.
 *
 * - `session-record`: the fields of a session; `session-content`: their form in the cookie
 * - `keyring`: the encryption; `request-cookies`: a long value in several cookies
 */
import { isDeepStrictEqual } from 'node:util'
import { deflateSync } from 'node:zlib'
import { type FailureReason, KnownError } from '../base/failure-reasons.js'
import { type Metrics, noMetrics } from '../base/metrics.js'
import type { Sealer } from './keyring.js'
import {
  chunkNames,
  joinChunks,
  MAX_VALUE_LENGTH,
  readCookie,
  SINGLE_COOKIE_LENGTH,
  splitIntoChunks
} from './request-cookies.js'
import { decodeSession, encodeSession, MAX_CONTENT_BYTES } from './session-content.js'
import {
  activeAt,
  type CookieSession,
  MAX_STORED_BYTES,
  type SessionFields,
  type SessionRecord,
  sizeOf
} from './session-record.js'

interface SessionCookieOptions {
  readonly sealer: Sealer
  /** The full cookie name, including the prefix. */
  readonly name: string
  /** A session expires this many seconds after its login, its last refresh or its last change by a custom route. */
  readonly inactivityTimeoutSeconds: number
  /** A session expires at the latest this many seconds after its login. If undefined, there is no such limit. */
  readonly maxLifetimeSeconds: number | undefined
  readonly now: () => number
  readonly metrics?: Metrics
}

export type SessionCookie = ReturnType<typeof createSessionCookie>

/**
 * The session does not fit into the cookies, or is larger than a session in Redis may be. `sizes` contains only the lengths of
 * the session and of each token, so it may be logged.
 */
export class SessionTooLargeError extends KnownError {
  override readonly reason = 'session_too_large' satisfies FailureReason
  readonly sizes: Readonly<Record<string, number>>

  /** @param sealed the length of the encrypted session; undefined if the session is kept in Redis */
  constructor({ fields, identity }: Pick<SessionRecord, 'fields' | 'identity'>, content: number, sealed?: number) {
    super(
      sealed === undefined
        ? `the session is too large for Redis: ${content} bytes, but at most ${MAX_STORED_BYTES} are allowed`
        : `the session does not fit into its cookies: ${content} bytes, ${sealed} characters when encrypted`
    )
    this.name = 'SessionTooLargeError'
    const tokens = { ...fields, ...(identity?.idToken && { id_token: identity.idToken }) }
    this.sizes = { ...(sealed !== undefined && { sealed }), content, ...sizesOf(tokens) }
  }
}

/**
 * Checks that a session is small enough to be kept in Redis.
 * @throws SessionTooLargeError
 */
export function requireStorable(record: SessionRecord): void {
  const bytes = sizeOf(record)
  if (bytes > MAX_STORED_BYTES) throw new SessionTooLargeError(record, bytes)
}

// Decrypted cookies are cached, because a browser sends the same cookie with many requests, and decryption takes as long as the
// rest of a request.
const MAX_CACHED = 1000

interface Opened {
  readonly sealed: string
  readonly session: CookieSession
  /** True if the cookie is encrypted with a previous secret. */
  readonly isOutdated: boolean
  /** Milliseconds since the epoch. */
  readonly expire: number
}

// The cache key consists of the last characters of the encrypted value. They are part of the authentication tag, which is
// different for each value. A hash of the whole value would be much slower. The key must not be longer than 12 characters,
// because V8 stores a longer substring as a view, and a view keeps the whole `Cookie` header in memory.
const TAG_CHARACTERS = 12

/** @example const record = createSessionCookie(options).open(request.headers.cookie ?? '') */
export function createSessionCookie(options: SessionCookieOptions) {
  const { sealer, name, inactivityTimeoutSeconds, now, metrics = noMetrics } = options
  const { maxLifetimeSeconds = Number.POSITIVE_INFINITY } = options
  const names = chunkNames(name)
  const opened = createOpenedCache(unseal)

  function endOf(loggedInAt: number, activeAt: number): number {
    return Math.min(activeAt + inactivityTimeoutSeconds * 1000, loggedInAt + maxLifetimeSeconds * 1000)
  }

  /** Returns the remaining lifetime of the session, or 0 if it is over. */
  function lifetimeMs(record: SessionRecord): number {
    return Math.max(0, endOf(record.loggedInAt, activeAt(record)) - now())
  }

  function unseal(sealed: string): Opened | undefined {
    const plaintext = sealer.open(sealed, name)
    const isOutdated = !sealer.isNewest(sealed)
    const content = plaintext && decodeSession(plaintext)
    if (!content) return undefined
    // The operator may have changed the limits since the cookie was written. A lower one applies immediately, and a higher one revives
    // no session.
    const expire = Math.min(content.expire, endOf(content.loggedInAt, content.activeAt))
    return { sealed, session: content.session, isOutdated, expire }
  }

  return {
    /** The cookie names of all possible chunks, in the order of the chunks. */
    names,
    /**
     * Returns the session in a `Cookie` header, or the reference to it. Returns undefined if the session is missing, incomplete,
     * unreadable or expired.
     */
    open(cookieHeader: string): CookieSession | undefined {
      const sealed = joinChunks(cookieHeader, names)
      const known = sealed && opened.get(sealed)
      // A session may have expired since it was cached, so check the expiry for every request.
      if (known && known.expire >= now()) {
        metrics.count('session_cookies_total', { outcome: 'valid' })
        if (known.isOutdated) metrics.count('session_cookies_with_previous_secret_total')
        return known.session
      }
      if (readCookie(cookieHeader, name) !== undefined) {
        metrics.count('session_cookies_total', { outcome: known ? 'expired' : 'unreadable' })
      }
      return undefined
    },
    lifetimeMs,
    /**
     * Returns the values of the cookies, in the order of `names`. If the session is kept in Redis, its cookie is only a reference,
     * which is always small enough.
     * @throws SessionTooLargeError
     */
    seal(record: SessionRecord): string[] {
      const plaintext = encodeSession(record, endOf(record.loggedInAt, activeAt(record)))
      const fitsIntoOne = sealer.lengthOf(plaintext) <= SINGLE_COOKIE_LENGTH
      const sealed = sealer.seal(fitsIntoOne ? plaintext : deflateSync(plaintext), name)
      // A session that compresses well can fit into the cookies and still exceed the limit for decompression. `open` would then
      // reject it.
      if (sealed.length > MAX_VALUE_LENGTH || plaintext.length > MAX_CONTENT_BYTES) {
        throw new SessionTooLargeError(record, plaintext.length, sealed.length)
      }
      return splitIntoChunks(sealed)
    },
    /** Returns the names of all session cookies in a `Cookie` header, even if their values are unreadable. */
    sentNames: (cookieHeader: string): string[] => names.filter(name => readCookie(cookieHeader, name) !== undefined),
    /**
     * Clears the cache of decrypted cookies. Call this function when the secrets change. Otherwise, cached cookies that were
     * encrypted with a removed secret would still be accepted.
     */
    forgetOpened: opened.clear
  }
}

function createOpenedCache(unseal: (sealed: string) => Opened | undefined) {
  const cached = new Map<string, Opened>()
  const seenOnce = new Map<string, CookieSession>()
  return {
    /** Returns what `unseal` returned for this encrypted value, now or earlier. */
    get(sealed: string): Opened | undefined {
      const tag = sealed.slice(-TAG_CHARACTERS)
      const known = cached.get(tag)
      if (known?.sealed === sealed) return known
      const opened = unseal(sealed)
      const first = seenOnce.get(tag)
      // A cookie is cached only when it arrives for the second time. Otherwise many clients with one request each could
      // evict the cookies that arrive often.
      if (opened && first) {
        seenOnce.delete(tag)
        // The memory of the process has the first object, and compares each request with it, which is fast for the same object.
        const session = isDeepStrictEqual(first, opened.session) ? first : opened.session
        // Without the copy, V8 may store the string as a view, which keeps the whole `Cookie` header in memory.
        const copy = Buffer.from(sealed, 'latin1').toString('latin1')
        addToCache(cached, tag, { ...opened, session, sealed: copy })
      } else if (opened) addToCache(seenOnce, tag, opened.session)
      return opened
    },
    clear(): void {
      cached.clear()
      seenOnce.clear()
    }
  }
}

function addToCache<T>(map: Map<string, T>, key: string, value: T): void {
  if (map.size >= MAX_CACHED) map.delete(map.keys().next().value as string)
  map.set(key, value)
}

function sizesOf(tokens: SessionFields & { id_token?: string }): Record<string, number> {
  return Object.fromEntries(Object.entries(tokens).map(([name, value]) => [name, String(value).length]))
}
