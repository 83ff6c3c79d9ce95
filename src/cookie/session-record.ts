import { createHash } from 'node:crypto'
import type { Requester } from '../base/fair-queue.js'

/**
 * The fields of a session. Request handlers read them in `ctx.session`, so their names must not change. Every session has a
 * refresh token and an expiry. In single mode it has one access token, and in dual mode it has two.
 */
export interface SessionFields {
  /** The access token in single mode. */
  token?: string
  /** In dual mode, the access token with few scopes that the browser may get. */
  public_token?: string
  /** In dual mode, the access token with more scopes that stays on the server. */
  internal_token?: string
  refresh_token: string
  /** The expiry of the access tokens, in milliseconds since the epoch. */
  expires_at: number
}

/** The user who signed in, as named by the ID token of the login (OpenID Connect Core section 2). */
export interface Identity {
  readonly iss: string
  readonly sub: string
  /** The id of the login session at the provider. Only set with back-channel logout, if the ID token has a `sid`. */
  readonly sid?: string
  /**
   * The `iat` of the ID token, and its `auth_time`, which is the time at which the user entered the password at the provider.
   * Both are in seconds since the epoch. Only set with back-channel logout.
   */
  readonly signedIn?: { readonly iat: number; readonly authTime?: number }
  /** The display name in the ID token, for pages if the user info has none. */
  readonly name?: string
  /** The ID token itself. Only set if a logout sends it to the provider as `id_token_hint`. */
  readonly idToken?: string
}

/** A session at one revision. In addition to the fields that request handlers see, it has fields that only this server uses. */
export type SessionRecord = CompleteSession | HalfRefreshedSession

export interface CompleteSession extends SessionContent {
  readonly kind: 'complete'
}

/**
 * In dual mode, a session between the two token requests of a refresh: `internal_token` is new, but `public_token` and
 * `expires_at` are not. The session is due until the second request has succeeded.
 */
export interface HalfRefreshedSession extends SessionContent {
  readonly kind: 'half-refreshed'
  /** The expiry of `internal_token`, in milliseconds since the epoch. */
  readonly internalExpiresAt: number
}

interface SessionContent {
  /**
   * The id of the session, which comes from its login. A refresh does not change it. The store has one cell for each id, so a
   * logout applies to all copies of the cookie.
   */
  readonly id: string
  /**
   * The revision of the session. It is 1 after the login, and grows by 1 with every stored token response. If the session is kept
   * in Redis, it also grows by 1 with every change by a request handler. Of two records of a session, the record with the higher
   * revision is newer.
   */
  readonly rev: number
  /** The time of the login, in milliseconds since the epoch. A refresh does not change it. */
  readonly loggedInAt: number
  /** The time at which the tokens were issued, in milliseconds since the epoch. */
  readonly issuedAt: number
  /** The time of the last change by a custom route, in milliseconds since the epoch. */
  readonly changedAt?: number
  readonly fields: Readonly<SessionFields>
  /** A refresh replaces only the ID token in the identity. The identity is undefined if the login did not request the scope `openid`. */
  readonly identity?: Identity | undefined
  /**
   * The time at which the session last joined the lists of its user (`sessions/users/`), in milliseconds since the epoch. Only
   * set with back-channel logout.
   */
  readonly listedAt?: number
  /** True if the ID token of the login satisfied the access list without the user info. A refresh does not change this. */
  readonly isAllowedByIdToken?: true
  /**
   * True if the access list has not been checked since the provider issued `refresh_token`. The record then has only the access
   * tokens of earlier, checked responses, and the session is due for a refresh (`login/access-check.ts`).
   */
  readonly isUnchecked?: true
  /**
   * The random key of a session that is kept in Redis (`session.store: redis`). It is stored only in the cookie, and the record
   * in Redis can be decrypted only with both this key and the session secret. A refresh does not change the key.
   */
  readonly key?: string
}

/** The content of the cookie of a session that is kept in Redis. It names the session and contains no tokens. */
export interface SessionReference {
  readonly id: string
  /**
   * The revision of the session when the cookie was written. If the session has a newer revision now, the browser gets a new
   * cookie.
   */
  readonly rev: number
  readonly key: string
}

/** Returns the time of the login, the last refresh or the last change by a custom route, from which the inactivity counts. */
export function activeAt({ issuedAt, changedAt = 0 }: Pick<SessionRecord, 'issuedAt' | 'changedAt'>): number {
  return Math.max(issuedAt, changedAt)
}

/** The content of a session cookie: the whole session, or with `session.store: redis` a reference to it. */
export type CookieSession = SessionRecord | SessionReference

/** Returns false for a reference, whose tokens are in Redis. */
export function hasTokens(session: CookieSession): session is SessionRecord {
  return 'fields' in session
}

/** Returns true for a session that is kept in Redis, and for a reference to it. */
export function isKeptInRedis<Session extends CookieSession>(session: Session): session is Session & SessionReference {
  return session.key !== undefined
}

/**
 * The maximum size of a session that is kept in Redis, in bytes of JSON. The size is limited because each request reads the whole
 * session.
 */
export const MAX_STORED_BYTES = 256 * 1024

/**
 * Returns the pseudonym of a session for the log. With the id itself, a reader of the log could find the session in Redis. Eight
 * characters are enough to distinguish the sessions in a log.
 */
export function sessionHash(id: string): string {
  return createHash('sha256').update(id).digest('base64url').slice(0, 8)
}

/**
 * Returns the session, and the user whom the issuer and the subject identify (OpenID Connect Core section 2). Without the scope
 * `openid`, the user is unknown, so each session counts as a user.
 */
export function requesterOf({ id, identity }: Pick<SessionRecord, 'id' | 'identity'>): Requester {
  // Neither an issuer nor a session id contains a space.
  return { session: id, user: identity ? `${identity.iss} ${identity.sub}` : id }
}

/** Returns the size of a session in bytes of JSON. */
export function sizeOf(record: SessionRecord): number {
  return Buffer.byteLength(JSON.stringify(record))
}

const TOKEN_FIELDS: readonly string[] = [
  'token',
  'public_token',
  'internal_token',
  'refresh_token',
  'expires_at'
] satisfies (keyof SessionFields)[]

/**
 * Returns the token fields of `tokens`, and the fields that a request handler has added to `stored`. Names that begin with an
 * underscore are ignored, because this server and koa-session use them.
 */
export function withCustomFields(tokens: SessionFields, stored: object): SessionFields {
  const isCustom = (name: string) => !TOKEN_FIELDS.includes(name) && !name.startsWith('_')
  const { token, public_token, internal_token, refresh_token, expires_at } = tokens
  return {
    ...Object.fromEntries(Object.entries(stored).filter(([name]) => isCustom(name))),
    ...(token !== undefined && { token }),
    ...(public_token !== undefined && { public_token }),
    ...(internal_token !== undefined && { internal_token }),
    refresh_token,
    expires_at
  }
}
