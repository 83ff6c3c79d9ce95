/**
 * The session lives in the browser, sealed. What cannot be opened, for whatever reason, is no session; nothing in
 * here throws over what a client sent.
 */
import { deflateSync, inflateSync } from 'node:zlib'
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
}

/** The tokens do not fit the cookies a browser keeps. The sizes may be logged; they tell nothing secret. */
export class SessionTooLargeError extends Error {
  readonly sizes: Readonly<Record<string, number>>

  constructor(sizes: Readonly<Record<string, number>>) {
    super(`the sealed session has ${sizes.sealed} characters, ${LONGEST_VALUE} fit`)
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

// Generous beside the 15 kB that fit, and small enough that a crafted value cannot exhaust memory.
const LONGEST_INFLATED = 64 * 1024
// zlib's header byte (RFC 1950 section 2.2); JSON here always begins with a brace.
const ZLIB_HEADER = 0x78

export function createSessionCookie({ sealer, name, maxAgeMs, now }: SessionCookieParts): SessionCookie {
  const names = chunkNames(name)
  return {
    names,
    open(cookieHeader) {
      const sealed = joinChunks(cookieHeader, names)
      const plaintext = sealed && sealer.open(sealed, name)
      const json = plaintext && parse(plaintext)
      if (!json || json._expire < now()) return undefined
      const { _id, _issued, _expire, ...fields } = json
      return { id: _id, issuedAt: _issued, fields }
    },
    seal({ id, issuedAt, fields }) {
      const content: SealedJson = { ...fields, _id: id, _issued: issuedAt, _expire: now() + maxAgeMs }
      const plaintext = Buffer.from(JSON.stringify(content))
      let sealed = sealer.seal(plaintext, name)
      if (sealed.length > SINGLE_COOKIE_LENGTH) sealed = sealer.seal(deflateSync(plaintext), name)
      if (sealed.length > LONGEST_VALUE) throw new SessionTooLargeError({ sealed: sealed.length, ...sizesOf(fields) })
      return splitIntoChunks(sealed)
    },
    sentNames(cookieHeader) {
      return names.filter(name => readCookie(cookieHeader, name) !== undefined)
    }
  }
}

function parse(plaintext: Buffer): SealedJson | undefined {
  try {
    const json =
      plaintext[0] === ZLIB_HEADER ? inflateSync(plaintext, { maxOutputLength: LONGEST_INFLATED }) : plaintext
    return JSON.parse(json.toString()) as SealedJson
  } catch {
    return undefined
  }
}

function sizesOf(fields: SessionFields): Record<string, number> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value).length]))
}
