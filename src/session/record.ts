/**
 * The session data of the contract (section 2.1). The names are those of the stored JSON. Every session has a refresh token
 * and an expiry; which access tokens it has depends on the mode.
 */
export interface SessionFields {
  /** The access token in single mode. */
  token?: string
  /** The access token for the browser in dual mode. */
  public_token?: string
  /** The access token that stays on the server, in dual mode. */
  internal_token?: string
  refresh_token: string
  /** Milliseconds since the epoch. */
  expires_at: number
}

/** The person who signed in, from the ID token of the login (OpenID Connect Core section 2). */
export interface Identity {
  readonly iss: string
  readonly sub: string
  /** The display name. Only set if the provider has no user info endpoint. */
  readonly name?: string
  /** The value of `id_token_hint`. Only set if a logout also signs out at the provider. */
  readonly idToken?: string
}

/** A session: the fields of the contract and the fields that only this server uses. */
export interface SessionRecord {
  /** A random id. It is created at login and kept by every refresh. Logout marks contain it. */
  readonly id: string
  /** The time of the login, in milliseconds since the epoch. Every refresh keeps it. */
  readonly loggedInAt: number
  /** The time at which the tokens were issued, in milliseconds since the epoch. */
  readonly issuedAt: number
  readonly fields: Readonly<SessionFields>
  /** As in RefreshState. Only set in dual mode, if a refresh of this session still needs its second step. */
  readonly internalExpiresAt?: number
  /** The coordination key of the kept result with this session. When the browser sends the session, that result is not needed any more. */
  readonly supersedes?: string
  /** Every refresh keeps it. Undefined if `openid` was not among the scopes of the login. */
  readonly identity?: Identity | undefined
}

const TOKEN_FIELDS: readonly string[] = [
  'token',
  'public_token',
  'internal_token',
  'refresh_token',
  'expires_at'
] satisfies (keyof SessionFields)[]

/**
 * Combines the contract's fields of `tokens` with the fields that a program has put into `stored`. Names that begin with an
 * underscore are reserved for this server and koa-session.
 */
export function withOwnFields(tokens: SessionFields, stored: object): SessionFields {
  const isOwn = (name: string) => !TOKEN_FIELDS.includes(name) && !name.startsWith('_')
  const { token, public_token, internal_token, refresh_token, expires_at } = tokens
  return {
    ...Object.fromEntries(Object.entries(stored).filter(([name]) => isOwn(name))),
    ...(token !== undefined && { token }),
    ...(public_token !== undefined && { public_token }),
    ...(internal_token !== undefined && { internal_token }),
    refresh_token,
    expires_at
  }
}
