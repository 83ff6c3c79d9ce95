/**
 * The quirks of identity providers: deviations from the standards, and behaviour that the standards leave open. The
 * metadata of a provider contains its quirks. Other code checks for a quirk and never for the name of a provider.
 */

export interface Quirks {
  /** The name of the provider, if the provider is in the table. */
  readonly name?: string
  /**
   * True if the host identifies the provider with certainty. Otherwise, only the paths look like those of the named
   * provider.
   */
  readonly isSure?: true
  /**
   * True if the provider expects the client id and the client secret in HTTP Basic without form-encoding, which RFC
   * 6749 section 2.3.1 requires.
   */
  readonly takesPlainCredentials?: true
  /**
   * True if the end-session endpoint has no parameter except `post_logout_redirect_uri`. In that case, the session
   * contains no ID token for `id_token_hint` (OpenID Connect RP-Initiated Logout section 2).
   */
  readonly logsOutWithoutHint?: true
  /** True if the user info endpoint identifies a user whose login did not request the scope `openid`. */
  readonly identifiesWithoutOpenid?: true
  /** True if a refresh must always name its scopes. */
  readonly needsRefreshScope?: true
  /** True if the scope `offline_access` is enough for a refresh token, without the parameter `prompt=consent`. */
  readonly issuesOfflineWithoutConsent?: true
  /**
   * True if the provider issues a refresh token only with the parameter `access_type=offline`, and only when the user consents.
   */
  readonly needsAccessType?: true
  /** True if the end-session endpoint requires the parameter `logout_uri`. */
  readonly needsLogoutUri?: true
  /**
   * The reason why dual mode does not work, as the end of a sentence about the provider. Null if dual mode works.
   * Undefined if dual mode has not been tested with this provider.
   */
  readonly dualModeProblem?: string | null
}

/** The URLs of a provider. URLs that are not known yet are missing. */
interface KnownUrls {
  readonly issuer?: string | undefined
  readonly authorizationEndpoint?: string
  readonly tokenEndpoint?: string
}

/** Returns the quirks of the provider at these URLs. A provider that is not in the table has no quirks. */
export function quirksOf(urls: KnownUrls): Quirks {
  return table.find(({ recognises }) => recognises(urls))?.quirks ?? {}
}

interface ProviderRow {
  readonly recognises: (urls: KnownUrls) => boolean
  readonly quirks: Quirks
}

const RETURNS_ALL_SCOPES =
  'returns all scopes of the login at every refresh. Dual mode does not accept a public token with all scopes'

// docs/reference/providers/ names the tested versions of these providers. Those that can run on any host are recognised by their paths.
const table: readonly ProviderRow[] = [
  {
    recognises: ({ issuer, tokenEndpoint = issuer }) =>
      tokenEndpoint !== undefined && new URL(tokenEndpoint).origin === 'https://developer.api.autodesk.com',
    quirks: {
      name: 'Autodesk Platform Services',
      isSure: true,
      takesPlainCredentials: true,
      logsOutWithoutHint: true,
      identifiesWithoutOpenid: true,
      needsRefreshScope: true,
      dualModeProblem: null
    }
  },
  {
    recognises: withIssuer(/^https:\/\/accounts\.google\.com$/),
    quirks: { name: 'Google', isSure: true, needsAccessType: true }
  },
  {
    recognises: ({ issuer = '', tokenEndpoint = '' }) =>
      /^https:\/\/cognito-idp\.[\w-]+\.amazonaws\.com(\.cn)?\//.test(issuer) ||
      /^https:\/\/[\w.-]+\.amazoncognito\.com\//.test(tokenEndpoint),
    quirks: { name: 'Amazon Cognito', isSure: true, needsLogoutUri: true, dualModeProblem: RETURNS_ALL_SCOPES }
  },
  {
    // Entra (also its clouds for the US government and China), Okta, Auth0 and Zitadel, on their usual hosts.
    recognises: withIssuer(
      /^https:\/\/([\w-]+\.)*(microsoftonline\.(com|us|cn)|okta\.com|oktapreview\.com|okta-(emea|gov)\.com|auth0\.com|zitadel\.cloud)(\/|$)/
    ),
    quirks: { issuesOfflineWithoutConsent: true }
  },
  {
    recognises: withPaths(/\/protocol\/openid-connect\/auth$/, /\/protocol\/openid-connect\/token$/),
    quirks: { name: 'Keycloak', issuesOfflineWithoutConsent: true, dualModeProblem: null }
  },
  {
    recognises: withPaths(/\/dex\/auth$/, /\/dex\/token$/),
    quirks: { name: 'Dex', issuesOfflineWithoutConsent: true }
  },
  {
    recognises: withPaths(/\/oauth\/v2\/authorize$/, /\/oauth\/v2\/token$/),
    quirks: { name: 'Zitadel', issuesOfflineWithoutConsent: true }
  },
  {
    // Before Django OAuth Toolkit, whose paths have the same end.
    recognises: withPaths(/\/application\/o\/authorize\/$/, /\/application\/o\/token\/$/),
    quirks: { name: 'authentik', issuesOfflineWithoutConsent: true }
  },
  {
    recognises: withPaths(/\/oauth2\/auth$/, /\/oauth2\/token$/),
    quirks: {
      name: 'Ory Hydra',
      issuesOfflineWithoutConsent: true,
      dualModeProblem: RETURNS_ALL_SCOPES
    }
  },
  {
    recognises: withPaths(/\/authorize\/$/, /\/token\/$/),
    quirks: {
      name: 'Django OAuth Toolkit',
      dualModeProblem: 'invalidates the internal token and its scopes when it issues the public token'
    }
  }
]

function withIssuer(form: RegExp): ProviderRow['recognises'] {
  return ({ issuer = '' }) => form.test(issuer)
}

function withPaths(authorization: RegExp, token: RegExp): ProviderRow['recognises'] {
  return ({ authorizationEndpoint = '', tokenEndpoint = '' }) =>
    authorization.test(authorizationEndpoint) && token.test(tokenEndpoint)
}

/** The code of the gateway in front of Autodesk Platform Services for an application that has no access to the API product. */
export const NO_ACCESS_CODE = 'AUTH-001'

/**
 * Error codes that mean `invalid_client`. The same gateway sends these codes instead of `invalid_client`.
 * Their form is unmistakable, so they are recognised in the responses of all providers.
 */
export const GATEWAY_CLIENT_ERRORS: ReadonlySet<string> = new Set([NO_ACCESS_CODE, 'AUTH-003'])

/**
 * True if the login page of Keycloak expired, and another tab has signed in meanwhile. The same login then succeeds immediately. The
 * description is unmistakable, so it is recognised in the responses of all providers.
 */
export function isExpiredLoginPage(error: string, description: string | null): boolean {
  return error === 'temporarily_unavailable' && description === 'authentication_expired'
}
