/**
 * Stores the session in an encrypted cookie. If a cookie cannot be decrypted for any reason, there is no session. No input of
 * a client makes this code throw.
 */
import { deflateSync, inflateSync } from 'node:zlib'
import { type Metrics, noMetrics } from '../metrics/metrics.js'
import type { Sealer } from '../sealing/keyring.js'
import { chunkNames, joinChunks, LONGEST_VALUE, SINGLE_COOKIE_LENGTH, splitIntoChunks } from './chunks.js'
import { readCookie } from './cookie-header.js'
import type { Identity, SessionFields, SessionRecord } from './record.js'

export interface SessionCookieParts {
  readonly sealer: Sealer
  /** The full cookie name, including the prefix. */
  readonly name: string
  /** The lifetime of a session since it was last sealed. */
  readonly maxAgeSeconds: number
  /** The lifetime of a session since its login, even if it is sealed again. Undefined means no limit. */
  readonly absoluteMaxAgeSeconds: number | undefined
  readonly now: () => number
  readonly metrics?: Pick<Metrics, 'sessionRead'>
}

export interface SessionCookie {
  /** The cookie names of all possible chunks, in the order of the chunks. */
  readonly names: readonly string[]
  /** Returns the session in a `Cookie` header. Returns undefined if it is missing, incomplete, unreadable or expired. */
  open(cookieHeader: string): SessionRecord | undefined
  /** Returns the chunks in the order of `names`. Each call starts a new maximum age. Throws SessionTooLargeError. */
  seal(record: SessionRecord): string[]
  /** Returns the lifetime of a session that is sealed now, or 0 if its absolute lifetime is over. */
  lifetimeMs(record: SessionRecord): number
  /** Returns the names of all chunks that the browser sent, even if they are unreadable. */
  sentNames(cookieHeader: string): string[]
  /** Must be called when the secrets change, so that sessions sealed with a removed secret no longer open. */
  forgetOpened(): void
}

/** The tokens do not fit into the cookies. The sizes contain no secret and may be logged. */
export class SessionTooLargeError extends Error {
  readonly sizes: Readonly<Record<string, number>>

  constructor(sizes: Readonly<Record<string, number>>) {
    super(`a session of ${sizes.content} bytes, sealed ${sizes.sealed} characters, does not fit its cookies`)
    this.name = 'SessionTooLargeError'
    this.sizes = sizes
  }
}

// The encrypted JSON. It has the fields of the contract, and our own fields with a leading underscore.
interface SealedJson extends SessionFields {
  readonly _id: string
  /** Missing in sessions that were sealed before absoluteMaxAgeSeconds existed. */
  readonly _login?: number
  readonly _issued: number
  readonly _expire: number
  readonly _internal?: number
  readonly _from?: string
  readonly _identity?: Identity
}

// The limit is larger than the 15 kB that fit into the cookies, because tokens are compressed. It is small enough that a
// crafted value cannot exhaust the memory.
const MAX_CONTENT_BYTES = 64 * 1024
// The first byte of zlib data (RFC 1950 section 2.2). Our JSON always begins with a brace instead.
const ZLIB_HEADER = 0x78

// Decrypted cookies are cached. Decryption takes as long as the rest of a request, and a page sends the same cookie often.
const MAX_CACHED = 1000

interface Opened {
  readonly sealed: string
  readonly record: SessionRecord
  /** Milliseconds since the epoch. */
  readonly expire: number
}

// The last characters of a sealed value are its authentication tag, which is different for every value. Using them as the
// key is much faster than hashing the whole value. V8 would make a longer substring a view, which keeps the whole header
// of the request in memory.
const TAG_CHARACTERS = 12

export function createSessionCookie(parts: SessionCookieParts): SessionCookie {
  const {
    sealer,
    name,
    maxAgeSeconds,
    absoluteMaxAgeSeconds = Number.POSITIVE_INFINITY,
    now,
    metrics = noMetrics
  } = parts
  const names = chunkNames(name)
  const cached = new Map<string, Opened>()
  const seenOnce = new Map<string, true>()

  function absoluteEnd({ loggedInAt }: SessionRecord): number {
    return loggedInAt + absoluteMaxAgeSeconds * 1000
  }

  function lifetimeMs(record: SessionRecord): number {
    return Math.max(0, Math.min(maxAgeSeconds * 1000, absoluteEnd(record) - now()))
  }

  function unseal(sealed: string): Opened | undefined {
    const plaintext = sealer.open(sealed, name)
    const json = plaintext && parse(plaintext)
    if (!json || typeof json.refresh_token !== 'string' || typeof json.expires_at !== 'number') return undefined
    // If the time of the login is missing, the absolute lifetime starts at the last refresh. The next seal stores this time.
    const { _id, _issued, _login = _issued, _expire, _internal, _from, _identity, ...fields } = json
    const record: SessionRecord = {
      id: _id,
      loggedInAt: _login,
      issuedAt: _issued,
      fields,
      ...(_internal !== undefined && { internalExpiresAt: _internal }),
      ...(_from !== undefined && { supersedes: _from }),
      ...(_identity !== undefined && { identity: _identity })
    }
    // The setting of the absolute lifetime may have been lowered since the session was sealed.
    return { sealed, record, expire: Math.min(_expire, absoluteEnd(record)) }
  }

  function openCached(sealed: string): Opened | undefined {
    const tag = sealed.slice(-TAG_CHARACTERS)
    const known = cached.get(tag)
    if (known?.sealed === sealed) return known
    const opened = unseal(sealed)
    // A cookie is cached when it arrives for the second time. Otherwise many clients that each send one request would evict
    // the cookies that are used often.
    if (opened && seenOnce.delete(tag)) add(cached, tag, { ...opened, sealed: copyOf(sealed) })
    else if (opened) add(seenOnce, tag, true)
    return opened
  }

  return {
    names,
    open(cookieHeader) {
      const sealed = joinChunks(cookieHeader, names)
      const opened = sealed && openCached(sealed)
      // Only the decrypted content is cached. The expiry is checked at every request.
      if (opened && opened.expire >= now()) {
        metrics.sessionRead('opened')
        return opened.record
      }
      if (readCookie(cookieHeader, name) !== undefined) metrics.sessionRead(opened ? 'expired' : 'unreadable')
      return undefined
    },
    lifetimeMs,
    seal(record) {
      const { id, loggedInAt, issuedAt, fields, internalExpiresAt, supersedes, identity } = record
      const content: SealedJson = {
        ...fields,
        _id: id,
        _login: loggedInAt,
        _issued: issuedAt,
        _expire: now() + lifetimeMs(record),
        ...(internalExpiresAt !== undefined && { _internal: internalExpiresAt }),
        ...(supersedes !== undefined && { _from: supersedes }),
        ...(identity !== undefined && { _identity: identity })
      }
      const plaintext = Buffer.from(JSON.stringify(content))
      let sealed = sealer.seal(plaintext, name)
      if (sealed.length > SINGLE_COOKIE_LENGTH) sealed = sealer.seal(deflateSync(plaintext), name)
      // Highly compressible tokens can fit into the cookies and still exceed the inflate limit.
      if (sealed.length > LONGEST_VALUE || plaintext.length > MAX_CONTENT_BYTES) {
        const tokens = { ...fields, ...(identity?.idToken && { id_token: identity.idToken }) }
        throw new SessionTooLargeError({ sealed: sealed.length, content: plaintext.length, ...sizesOf(tokens) })
      }
      return splitIntoChunks(sealed)
    },
    sentNames(cookieHeader) {
      return names.filter(name => readCookie(cookieHeader, name) !== undefined)
    },
    forgetOpened() {
      cached.clear()
      seenOnce.clear()
    }
  }
}

function add<T>(map: Map<string, T>, key: string, value: T): void {
  if (map.size >= MAX_CACHED) map.delete(map.keys().next().value as string)
  map.set(key, value)
}

/** Copies a text. Otherwise it may be a view of the request's header, which would then stay in memory. */
function copyOf(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

function parse(plaintext: Buffer): SealedJson | undefined {
  try {
    const json =
      plaintext[0] === ZLIB_HEADER ? inflateSync(plaintext, { maxOutputLength: MAX_CONTENT_BYTES }) : plaintext
    return JSON.parse(json.toString()) as SealedJson
  } catch {
    return undefined
  }
}

function sizesOf(tokens: SessionFields & { id_token?: string }): Record<string, number> {
  return Object.fromEntries(Object.entries(tokens).map(([name, value]) => [name, String(value).length]))
}
