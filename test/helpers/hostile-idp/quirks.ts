// Departures of existing providers from the strict one, as seen when the server was run against them (test/providers).

export interface Quirks {
  /** Dex: the code for a refresh token that is dead; otherwise invalid_grant. */
  readonly deadRefreshToken?: string
  /** Dex: one refresh token for each person and client, so that a login ends the one before. */
  readonly oneGrantAPerson?: boolean
  /** Django OAuth Toolkit: a narrower scope at a refresh is all that the new refresh token is good for. */
  readonly shrinksGrant?: boolean
  /** Django OAuth Toolkit: a refresh ends the access tokens from before. */
  readonly endsAccessTokens?: boolean
  /** Hydra: a refresh gives the scope of the login, whatever it asked for. */
  readonly ignoresRefreshScope?: boolean
  /** Keycloak: scopes in every answer, asked for or not. */
  readonly alwaysGrants?: string
  /** Keycloak and others: an ID token comes with a refresh too, without a nonce. */
  readonly idTokenOnRefresh?: boolean
  /** Keycloak: the code for a wrong secret, with status 401; otherwise invalid_client. */
  readonly wrongClient?: string
  /** Hydra: the page of the provider to which a wrong client or callback URL leads, with the error in its address. */
  readonly errorPage?: string
  /** Dex: the authorization endpoint leads to a page of the same host, which alone looks at the request. */
  readonly loginPage?: string
  /** Hydra: an end of session that names a way back must bring an ID token. */
  readonly needsIdTokenHint?: boolean
}

export const quirksOf = {
  dex: { deadRefreshToken: 'invalid_request', oneGrantAPerson: true, idTokenOnRefresh: true },
  hydra: { ignoresRefreshScope: true, idTokenOnRefresh: true, needsIdTokenHint: true },
  keycloak: { alwaysGrants: 'openid profile email', idTokenOnRefresh: true, wrongClient: 'unauthorized_client' },
  django: { shrinksGrant: true, endsAccessTokens: true, idTokenOnRefresh: true }
} as const satisfies Record<string, Quirks>
