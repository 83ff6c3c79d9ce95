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

// docs/providers/ names the tested versions of these providers. All except Autodesk Platform Services are recognised by
// their paths, because they can run on any host.
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
    recognises: withPaths(/\/protocol\/openid-connect\/auth$/, /\/protocol\/openid-connect\/token$/),
    quirks: { name: 'Keycloak', dualModeProblem: null }
  },
  {
    recognises: withPaths(/\/oauth2\/auth$/, /\/oauth2\/token$/),
    quirks: {
      name: 'Ory Hydra',
      dualModeProblem:
        'returns all scopes of the login at every refresh. Dual mode does not accept a public token with all scopes'
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

function withPaths(authorization: RegExp, token: RegExp): ProviderRow['recognises'] {
  return ({ authorizationEndpoint = '', tokenEndpoint = '' }) =>
    authorization.test(authorizationEndpoint) && token.test(tokenEndpoint)
}

/**
 * Error codes that mean `invalid_client`. The gateway in front of Autodesk Platform Services sends these codes instead
 * of `invalid_client`. Their form is unmistakable, so they are recognised in the responses of all providers.
 */
export const GATEWAY_CLIENT_ERRORS: ReadonlySet<string> = new Set(['AUTH-001', 'AUTH-003'])
