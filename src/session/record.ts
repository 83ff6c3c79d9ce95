/** What the contract keeps for one browser (contract section 2.1); the names are those of the stored JSON. */
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

/** The fields and what the server must know about them, kept inside the seal beside them. */
export interface SessionRecord {
  /** Random, made at login and carried through every renewal: what a logout marks. */
  readonly id: string
  /** When the tokens were issued, in milliseconds since the epoch. */
  readonly issuedAt: number
  readonly fields: Readonly<SessionFields>
}
