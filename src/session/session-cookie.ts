/**
 * The session is stored in the browser, sealed. A value that cannot be opened, for whatever reason, is treated as no
 * session. Nothing here throws because of what a client sent.
 */
import { deflateSync, inflateSync } from 'node:zlib'
import { type Metrics, noMetrics } from '../metrics/metrics.js'
import type { Sealer } from '../sealing/keyring.js'
import { chunkNames, joinChunks, LONGEST_VALUE, SINGLE_COOKIE_LENGTH, splitIntoChunks } from './chunks.js'
import { readCookie } from './cookie-header.js'
import type { Identity, SessionFields, SessionRecord } from './record.js'

export interface SessionCookieParts {
  readonly sealer: Sealer
  /** The full cookie name, prefix included. */
  readonly name: string
  /** How long a session lasts after it was sealed. */
  readonly maxAgeSeconds: number
  /** How long a session lasts after its login, however often it is sealed again. Undefined: no such limit. */
  readonly absoluteMaxAgeSeconds: number | undefined
  readonly now: () => number
  readonly metrics?: Pick<Metrics, 'sessionRead'>
}

export interface SessionCookie {
  /** Every name a chunk may have, first chunk first. */
  readonly names: readonly string[]
  /** The session in a `Cookie` header, or undefined if there is none or it is incomplete, not ours or expired. */
  open(cookieHeader: string): SessionRecord | undefined
  /** The chunks to set, in the order of `names`. Each call starts a new maximum age. Throws SessionTooLargeError. */
  seal(record: SessionRecord): string[]
  /** How long the session lasts if it is sealed now; 0 if its absolute age is over. */
  lifetimeMs(record: SessionRecord): number
  /** The names of our chunks that the browser sent, readable or not. */
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

// The flat JSON inside the seal: the contract's fields, and ours with a leading underscore.
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

// More than the 15 kB that fit into the cookies, and small enough that inflating a crafted value cannot exhaust memory.
const LONGEST_CONTENT = 64 * 1024
// The first byte of zlib data (RFC 1950 section 2.2). Our JSON always begins with a brace instead.
const ZLIB_HEADER = 0x78

// Opening a cookie costs as much as the rest of a request, and a page sends the same cookie many times.
const MOST_REMEMBERED = 1000

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
  const remembered = new Map<string, Opened>()
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
    if (!json) return undefined
    // Without a moment of login, the last refresh is the earliest moment known. The session's absolute age begins there
    // once, because the next seal stores it.
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
    // The end is sealed, but the setting may have been lowered since.
    return { sealed, record, expire: Math.min(_expire, absoluteEnd(record)) }
  }

  function openOnce(sealed: string): Opened | undefined {
    const tag = sealed.slice(-TAG_CHARACTERS)
    const known = remembered.get(tag)
    if (known?.sealed === sealed) return known
    const opened = unseal(sealed)
    // A cookie is remembered when it comes a second time. Otherwise many clients that each send one request would evict
    // the cookies that are used often.
    if (opened && seenOnce.delete(tag)) keep(remembered, tag, { ...opened, sealed: copyOf(sealed) })
    else if (opened) keep(seenOnce, tag, true)
    return opened
  }

  return {
    names,
    open(cookieHeader) {
      const sealed = joinChunks(cookieHeader, names)
      const opened = sealed && openOnce(sealed)
      // Only the opened content is remembered. The expiry is checked every time.
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
      if (sealed.length > LONGEST_VALUE || plaintext.length > LONGEST_CONTENT) {
        const tokens = { ...fields, ...(identity?.idToken && { id_token: identity.idToken }) }
        throw new SessionTooLargeError({ sealed: sealed.length, content: plaintext.length, ...sizesOf(tokens) })
      }
      return splitIntoChunks(sealed)
    },
    sentNames(cookieHeader) {
      return names.filter(name => readCookie(cookieHeader, name) !== undefined)
    },
    forgetOpened() {
      remembered.clear()
      seenOnce.clear()
    }
  }
}

function keep<T>(map: Map<string, T>, key: string, value: T): void {
  if (map.size >= MOST_REMEMBERED) map.delete(map.keys().next().value as string)
  map.set(key, value)
}

/** A real copy. The text may be a view of the request's header, which it would keep in memory. */
function copyOf(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

function parse(plaintext: Buffer): SealedJson | undefined {
  try {
    const json = plaintext[0] === ZLIB_HEADER ? inflateSync(plaintext, { maxOutputLength: LONGEST_CONTENT }) : plaintext
    return JSON.parse(json.toString()) as SealedJson
  } catch {
    return undefined
  }
}

function sizesOf(tokens: SessionFields & { id_token?: string }): Record<string, number> {
  return Object.fromEntries(Object.entries(tokens).map(([name, value]) => [name, String(value).length]))
}
