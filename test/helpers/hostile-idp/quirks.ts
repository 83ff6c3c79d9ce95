// Differences between existing providers and the strict one, as observed in test/real/providers, or as the documents of the others say.

export interface Quirks {
  /** Dex: the error code for a refresh token that is no longer valid. The default is invalid_grant. */
  readonly deadRefreshToken?: string
  /** Dex: each user has one refresh token for each client, so a login ends the previous one. */
  readonly oneGrantAPerson?: boolean
  /** Django OAuth Toolkit: after a refresh with a narrower scope, the new refresh token has only that scope. */
  readonly shrinksGrant?: boolean
  /** Django OAuth Toolkit: a refresh invalidates the earlier access tokens. */
  readonly endsAccessTokens?: boolean
  /** Hydra: a refresh returns the scope of the login, whatever scope was requested. */
  readonly ignoresRefreshScope?: boolean
  /** Keycloak: scopes that every token response contains, even if they were not requested. */
  readonly alwaysGrants?: string
  /** Keycloak and others: a refresh also returns an ID token, without a nonce. */
  readonly idTokenOnRefresh?: boolean
  /** Keycloak: the error code for a wrong secret, with status 401. The default is invalid_client. */
  readonly wrongClient?: string
  /** Hydra: a wrong client or callback URL redirects to this page of the provider, with the error in its query. */
  readonly errorPage?: string
  /**
   * Dex: the authorization endpoint redirects to this page on the same host without checking the request. The page
   * checks it.
   */
  readonly loginPage?: string
  /** GitHub Apps: a login without scopes is accepted. */
  readonly needsNoScope?: boolean
  /** Okta and others: a refresh token is issued only if the login requested offline_access. */
  readonly needsOfflineAccess?: boolean
  /** Google: a refresh token is issued only with these parameters of the authorization request. */
  readonly needsParameters?: Readonly<Record<string, string>>
  /** Google and Cognito: a refresh token stays valid, and a refresh returns none. */
  readonly keepsRefreshToken?: boolean
  /** Cognito: token responses have no scope, and access tokens are JWTs with the scope of the login. */
  readonly namesScopeInToken?: boolean
  /** Entra: this scope is not in the scope of a response. */
  readonly omitsScope?: string
  /** Cognito: a logout request has this parameter, which names the URL to return to. */
  readonly logoutParameter?: string
  /** Hydra: a logout request with a post_logout_redirect_uri must include an ID token. */
  readonly needsIdTokenHint?: boolean
}

export const quirksOf = {
  auth0: { needsOfflineAccess: true, idTokenOnRefresh: true },
  authentik: { needsOfflineAccess: true, idTokenOnRefresh: true },
  cognito: {
    ignoresRefreshScope: true,
    keepsRefreshToken: true,
    namesScopeInToken: true,
    idTokenOnRefresh: true,
    logoutParameter: 'logout_uri'
  },
  dex: { deadRefreshToken: 'invalid_request', oneGrantAPerson: true, idTokenOnRefresh: true },
  django: { shrinksGrant: true, endsAccessTokens: true, idTokenOnRefresh: true },
  entra: { needsOfflineAccess: true, omitsScope: 'offline_access', idTokenOnRefresh: true },
  gitlab: { endsAccessTokens: true, idTokenOnRefresh: true },
  google: {
    needsParameters: { access_type: 'offline', prompt: 'consent' },
    keepsRefreshToken: true,
    idTokenOnRefresh: true
  },
  hydra: { ignoresRefreshScope: true, idTokenOnRefresh: true, needsIdTokenHint: true },
  keycloak: { alwaysGrants: 'openid profile email', idTokenOnRefresh: true, wrongClient: 'unauthorized_client' },
  okta: { needsOfflineAccess: true, idTokenOnRefresh: true },
  zitadel: { needsOfflineAccess: true, idTokenOnRefresh: true }
} as const satisfies Record<string, Quirks>
