// Placeholder of the shape: the table replaces it.
export interface Config {
  readonly mode: 'single' | 'dual'
  readonly port: number
  readonly host: string | undefined
  /** Absolute path; undefined means the packaged starter page. */
  readonly wwwroot: string | undefined
  readonly session: {
    readonly secret: string
    readonly previousSecrets: readonly string[]
    readonly maxAgeSeconds: number
    readonly cookieName: string
  }
  readonly platform: {
    readonly clientId: string
    readonly clientSecret: string
    readonly callbackUrl: string
    readonly scopes: readonly string[]
    readonly internalScopes: readonly string[]
    readonly publicScopes: readonly string[]
    readonly issuer: string | undefined
    readonly authorizationEndpoint: string | undefined
    readonly tokenEndpoint: string | undefined
    readonly userinfoEndpoint: string | undefined
    /** An address, or the word `none`. */
    readonly revocationEndpoint: string | undefined
    readonly endSessionEndpoint: string | undefined
    readonly clientAuthentication: 'client_secret_basic' | 'client_secret_post'
    readonly pkce: boolean
    readonly prompt: string | undefined
    readonly timeoutSeconds: number
  }
  readonly refresh: { readonly marginSeconds: number; readonly keepSeconds: number }
  readonly logout: 'local' | 'revoke' | 'idp'
  readonly redisUrl: string | undefined
  readonly log: {
    readonly level: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'
    /** undefined: on a terminal only. */
    readonly pretty: boolean | undefined
    readonly requests: boolean
  }
  readonly trustProxy: boolean
  readonly metrics: { readonly port: number | undefined; readonly host: string }
  readonly shutdown: { readonly delaySeconds: number; readonly graceSeconds: number }
}
