/** The content of a session cookie before its encryption: the session, or the reference to it, as JSON. */
import { inflateSync } from 'node:zlib'
import {
  activeAt,
  type CookieSession,
  type Identity,
  isKeptInRedis,
  type SessionFields,
  type SessionRecord
} from './record.js'

// The JSON that is encrypted. The names of the fields that only this server uses begin with an underscore, because request
// handlers can add other fields.
interface SealedJson extends SessionFields {
  readonly _id: string
  readonly _rev: number
  readonly _login: number
  readonly _issued: number
  readonly _changed?: number
  readonly _expire: number
  /** The expiry of the internal token of a half-refreshed session. */
  readonly _internal?: number
  readonly _identity?: Identity
  readonly _listed?: number
  /** 1 if the ID token of the login satisfied the access list. */
  readonly _allowed?: 1
  /** 1 if the access list must be checked before the next refresh can complete. */
  readonly _unchecked?: 1
}

// The JSON of a reference. It is an array, so that the `Cookie` header stays short.
type ReferenceJson = readonly [
  id: string,
  rev: number,
  loggedInAt: number,
  expire: number,
  key: string,
  activeAt: number
]

// The limit applies to the session before compression, so it is larger than the 15 kB that fit into the cookies. But the limit is
// so small that decompressing a crafted value cannot exhaust the memory.
export const MAX_CONTENT_BYTES = 64 * 1024
// The first byte of zlib data (RFC 1950 section 2.2). It distinguishes zlib data from JSON, which begins with a brace or a
// bracket.
const ZLIB_HEADER = 0x78

interface Content {
  readonly session: CookieSession
  /** Milliseconds since the epoch. */
  readonly loggedInAt: number
  /** See `activeAt` in record.ts. */
  readonly activeAt: number
  /** The expiry when the cookie was written, in milliseconds since the epoch. */
  readonly expire: number
}

/** @param expire the time at which the cookie expires, in milliseconds since the epoch */
export function encodeSession(record: SessionRecord, expire: number): Buffer {
  return Buffer.from(JSON.stringify(isKeptInRedis(record) ? referenceJson(record, expire) : sealedJson(record, expire)))
}

function referenceJson(record: SessionRecord & { key: string }, expire: number): ReferenceJson {
  const { id, rev, loggedInAt, key } = record
  return [id, rev, loggedInAt, expire, key, activeAt(record)]
}

function sealedJson(record: SessionRecord, expire: number): SealedJson {
  const { id, rev, loggedInAt, issuedAt, changedAt, fields, identity, listedAt, isAllowedByIdToken, isUnchecked } =
    record
  return {
    ...fields,
    _id: id,
    _rev: rev,
    _login: loggedInAt,
    _issued: issuedAt,
    _expire: expire,
    ...(changedAt !== undefined && { _changed: changedAt }),
    ...(record.kind === 'half-refreshed' && { _internal: record.internalExpiresAt }),
    ...(identity !== undefined && { _identity: identity }),
    ...(listedAt !== undefined && { _listed: listedAt }),
    ...(isAllowedByIdToken && { _allowed: 1 }),
    ...(isUnchecked && { _unchecked: 1 })
  }
}

/** Returns undefined if the content cannot be read. */
export function decodeSession(plaintext: Buffer): Content | undefined {
  const json = parse(plaintext)
  if (isReference(json)) {
    const [id, rev, loggedInAt, expire, key, activeAt] = json
    return { session: { id, rev, key }, loggedInAt, activeAt, expire }
  }
  if (!json || typeof json.refresh_token !== 'string' || typeof json.expires_at !== 'number') return undefined
  // A cookie of an earlier version has no revision, so it cannot be used.
  if (typeof json._rev !== 'number' || typeof json._login !== 'number') return undefined
  const {
    _id,
    _rev,
    _issued,
    _changed,
    _login,
    _expire,
    _internal,
    _identity,
    _listed,
    _allowed,
    _unchecked,
    ...fields
  } = json
  const session: SessionRecord = {
    ...(_internal === undefined ? { kind: 'complete' } : { kind: 'half-refreshed', internalExpiresAt: _internal }),
    id: _id,
    rev: _rev,
    loggedInAt: _login,
    issuedAt: _issued,
    ...(_changed !== undefined && { changedAt: _changed }),
    fields,
    ...(_identity !== undefined && { identity: _identity }),
    ...(_listed !== undefined && { listedAt: _listed }),
    ...(_allowed !== undefined && { isAllowedByIdToken: true }),
    ...(_unchecked !== undefined && { isUnchecked: true })
  }
  return { session, loggedInAt: _login, activeAt: activeAt(session), expire: _expire }
}

function parse(plaintext: Buffer): SealedJson | ReferenceJson | undefined {
  try {
    const json =
      plaintext[0] === ZLIB_HEADER ? inflateSync(plaintext, { maxOutputLength: MAX_CONTENT_BYTES }) : plaintext
    return JSON.parse(json.toString()) as SealedJson | ReferenceJson
  } catch {
    return undefined
  }
}

function isReference(json: SealedJson | ReferenceJson | undefined): json is ReferenceJson {
  return Array.isArray(json)
}
