/** The content of a session cookie before its encryption: the session, or the reference to it, as JSON. */
import { inflateSync } from 'node:zlib'
import { activeAt, type CookieSession, hasTokens, isKeptInRedis, type SessionRecord } from './session-record.js'

// The JSON that is encrypted. The arrays and the two durations in milliseconds keep the `Cookie` header short. A session that is kept in
// Redis is only a reference.
type ContentJson = readonly [loggedInAt: number, activeMs: number, remainingMs: number, SessionRecord | ReferenceJson]
type ReferenceJson = readonly [id: string, rev: number, key: string]

// The limit applies to the session before compression, so it is larger than the 15 kB that fit into the cookies. But the limit is
// so small that decompressing a crafted value cannot exhaust the memory.
export const MAX_CONTENT_BYTES = 64 * 1024
// The first byte of zlib data (RFC 1950 section 2.2). It distinguishes zlib data from JSON, which begins with a bracket.
const ZLIB_HEADER = 0x78

/** @param expire the time at which the cookie expires, in milliseconds since the epoch */
export function encodeSession(record: SessionRecord, expire: number): Buffer {
  const { id, rev, loggedInAt } = record
  const session: ContentJson[3] = isKeptInRedis(record) ? [id, rev, record.key] : record
  const active = activeAt(record)
  return Buffer.from(JSON.stringify([loggedInAt, active - loggedInAt, expire - active, session] satisfies ContentJson))
}

/**
 * Returns the session, or the reference to it, and three times in milliseconds since the epoch: the login, the last activity
 * (`activeAt` in session-record.ts), and the expiry when the cookie was written. Returns undefined if the content cannot be read.
 */
export function decodeSession(plaintext: Buffer) {
  const [loggedInAt, activeMs, remainingMs, content] = parse(plaintext)
  const session: CookieSession | undefined = isReference(content)
    ? { id: content[0], rev: content[1], key: content[2] }
    : content
  // Only another version of this server can have encrypted content in another form.
  if (![loggedInAt, activeMs, remainingMs].every(Number.isFinite) || !session || !isWhole(session)) return undefined
  const activeAt = Number(loggedInAt) + Number(activeMs)
  return { session, loggedInAt: Number(loggedInAt), activeAt, expire: activeAt + Number(remainingMs) }
}

function isReference(content: Partial<ContentJson>[3]): content is ReferenceJson {
  return Array.isArray(content)
}

function isWhole(session: CookieSession): boolean {
  if (!hasTokens(session)) return typeof session.rev === 'number' && typeof session.key === 'string'
  const { rev, fields } = session
  return typeof rev === 'number' && typeof fields.refresh_token === 'string' && typeof fields.expires_at === 'number'
}

/** Returns an empty array if the content is no array in JSON. */
function parse(plaintext: Buffer): Partial<ContentJson> {
  try {
    const json =
      plaintext[0] === ZLIB_HEADER ? inflateSync(plaintext, { maxOutputLength: MAX_CONTENT_BYTES }) : plaintext
    const content: unknown = JSON.parse(json.toString())
    return Array.isArray(content) ? (content as unknown as ContentJson) : []
  } catch {
    return []
  }
}
