/** The session data of the contract (section 2.1). The names are those of the stored JSON. */
export interface SessionFields {
  /** Single mode: the access token. */
  token?: string
  /** Dual mode: the access token for the browser. */
  public_token?: string
  /** Dual mode: the access token that never leaves the server. */
  internal_token?: string
  refresh_token?: string
  /** Milliseconds since the epoch. */
  expires_at?: number
}

/** Who signed in, as the ID token of the login says (OpenID Connect Core section 2). */
export interface Identity {
  readonly iss: string
  readonly sub: string
  /** The display name, kept where the provider has no user info endpoint to ask for it. */
  readonly name?: string
  /** Kept for `id_token_hint`, where a logout leads to the provider. */
  readonly idToken?: string
}

/** The contract's fields, and what the server stores beside them inside the seal. */
export interface SessionRecord {
  /** Random, made at login and carried through every refresh. A logout mark names the session by it. */
  readonly id: string
  /** The moment of the login, in milliseconds since the epoch. Carried through every refresh. */
  readonly loggedInAt: number
  /** When the tokens were issued, in milliseconds since the epoch. */
  readonly issuedAt: number
  readonly fields: Readonly<SessionFields>
  /** Dual mode: as in RefreshState, when a refresh of this session is half done. */
  readonly internalExpiresAt?: number
  /** The coordination key whose kept result led to this session. The browser no longer needs it when it sends this one. */
  readonly supersedes?: string
  /** Carried through every refresh. Absent where `openid` was not among the scopes of the login. */
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
 * The contract's fields of `tokens`, and beside them the fields that a program keeps in `stored`. Names that begin with an
 * underscore belong to this server and to koa-session.
 */
export function withOwnFields(tokens: SessionFields, stored: object): SessionFields {
  const isOwn = (name: string) => !TOKEN_FIELDS.includes(name) && !name.startsWith('_')
  return Object.fromEntries([
    ...Object.entries(stored).filter(([name]) => isOwn(name)),
    ...Object.entries(tokens).filter(([name]) => TOKEN_FIELDS.includes(name))
  ])
}
