/**
 * The session lives in the browser, sealed. What cannot be opened, for whatever reason, is no session; nothing in
 * here throws over what a client sent.
 */
import { deflateSync, inflateSync } from 'node:zlib'
import { type Metrics, noMetrics } from '../metrics/metrics.js'
import type { Sealer } from '../sealing/keyring.js'
import { chunkNames, joinChunks, LONGEST_VALUE, SINGLE_COOKIE_LENGTH, splitIntoChunks } from './chunks.js'
import { readCookie } from './cookie-header.js'
import type { SessionFields, SessionRecord } from './record.js'

export interface SessionCookieParts {
  readonly sealer: Sealer
  /** The full cookie name, prefix included. */
  readonly name: string
  readonly maxAgeMs: number
  readonly now: () => number
  readonly metrics?: Pick<Metrics, 'sessionRead'>
}

export interface SessionCookie {
  /** Every name a chunk may have, first chunk first. */
  readonly names: readonly string[]
  /** The session in a `Cookie` header, or undefined when there is none that is ours, whole and in date. */
  open(cookieHeader: string): SessionRecord | undefined
  /** The chunks to set, in the order of `names`. Each call starts a new age. Throws SessionTooLargeError. */
  seal(record: SessionRecord): string[]
  /** The names of our chunks that the browser sent, readable or not. */
  sentNames(cookieHeader: string): string[]
  /** To be called when the secrets change: what was opened with a removed one must not open again. */
  forgetOpened(): void
}

/** The tokens do not fit the cookies a browser keeps. The sizes may be logged; they tell nothing secret. */
export class SessionTooLargeError extends Error {
  readonly sizes: Readonly<Record<string, number>>

  constructor(sizes: Readonly<Record<string, number>>) {
    super(`a session of ${sizes.content} bytes, sealed ${sizes.sealed} characters, does not fit its cookies`)
    this.name = 'SessionTooLargeError'
    this.sizes = sizes
  }
}

// The flat JSON inside the seal: the contract's fields, and ours with an underscore before them.
interface SealedJson extends SessionFields {
  readonly _id: string
  readonly _issued: number
  readonly _expire: number
}

// Generous beside the 15 kB that fit, and small enough that inflating a crafted value cannot exhaust memory.
const LONGEST_CONTENT = 64 * 1024
// zlib's header byte (RFC 1950 section 2.2); JSON here always begins with a brace.
const ZLIB_HEADER = 0x78

// Opening a cookie costs as much as the rest of a request, and a page sends the same one many times.
const MOST_REMEMBERED = 1000

interface Opened {
  readonly sealed: string
  readonly record: SessionRecord
  readonly expire: number
}

// The end of a sealed value is its tag, which differs for each; hashing that is much quicker than all of the value. A
// longer piece would be no copy but a view, and keep the whole request's header in memory.
const TAG_CHARACTERS = 12

export function createSessionCookie(parts: SessionCookieParts): SessionCookie {
  const { sealer, name, maxAgeMs, now, metrics = noMetrics } = parts
  const names = chunkNames(name)
  const remembered = new Map<string, Opened>()
  const seenOnce = new Map<string, true>()

  function unseal(sealed: string): Opened | undefined {
    const plaintext = sealer.open(sealed, name)
    const json = plaintext && parse(plaintext)
    if (!json) return undefined
    const { _id, _issued, _expire, ...fields } = json
    return { sealed, record: { id: _id, issuedAt: _issued, fields }, expire: _expire }
  }

  function openOnce(sealed: string): Opened | undefined {
    const tag = sealed.slice(-TAG_CHARACTERS)
    const known = remembered.get(tag)
    if (known?.sealed === sealed) return known
    const opened = unseal(sealed)
    // A cookie is worth remembering when it comes a second time: a crowd that each come once would only push them out.
    if (opened && seenOnce.delete(tag)) keep(remembered, tag, { ...opened, sealed: copyOf(sealed) })
    else if (opened) keep(seenOnce, tag, true)
    return opened
  }

  return {
    names,
    open(cookieHeader) {
      const sealed = joinChunks(cookieHeader, names)
      const opened = sealed && openOnce(sealed)
      // Only the opening is remembered; whether the session is still in date is asked every time.
      if (opened && opened.expire >= now()) {
        metrics.sessionRead('opened')
        return opened.record
      }
      if (readCookie(cookieHeader, name) !== undefined) metrics.sessionRead(opened ? 'expired' : 'unreadable')
      return undefined
    },
    seal({ id, issuedAt, fields }) {
      const content: SealedJson = { ...fields, _id: id, _issued: issuedAt, _expire: now() + maxAgeMs }
      const plaintext = Buffer.from(JSON.stringify(content))
      let sealed = sealer.seal(plaintext, name)
      if (sealed.length > SINGLE_COOKIE_LENGTH) sealed = sealer.seal(deflateSync(plaintext), name)
      // Tokens that repeat themselves may fit sealed and still be more than opening them would allow.
      if (sealed.length > LONGEST_VALUE || plaintext.length > LONGEST_CONTENT) {
        throw new SessionTooLargeError({ sealed: sealed.length, content: plaintext.length, ...sizesOf(fields) })
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

/** The same text apart from the request's header, of which it is a view. */
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

function sizesOf(fields: SessionFields): Record<string, number> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value).length]))
}
