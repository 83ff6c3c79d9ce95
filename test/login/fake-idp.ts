import type { IdentityProvider } from '#src/provider/client.js'
import type { UserInfo } from '#src/provider/id-token.js'
import type { ProviderMetadata } from '#src/provider/metadata.js'
import { OAuthError, ProviderError } from '#src/provider/provider-error.js'
import type { TokenSet } from '#src/provider/token-set.js'
import { createDeferred } from '../helpers/deferred.js'
import { metadataWith } from '../helpers/metadata.js'

export type Grant =
  | { readonly type: 'code'; readonly code: string; readonly codeVerifier: string | undefined }
  | { readonly type: 'refresh'; readonly refreshToken: string; readonly scope: string | undefined }

/** The response to one token request: an error, changes to the usual token set, or a function that returns changes. */
export type Answer = Error | Partial<TokenSet> | (() => Promise<Partial<TokenSet>>)

export interface FakeIdpOptions {
  readonly lifetimeSeconds?: number
  /** If false, a refresh token stays valid and refresh responses contain no new one. */
  readonly rotates?: boolean
  readonly issuer?: string
  /** Changes to the metadata. Without changes, all endpoints are present. */
  readonly metadata?: Partial<ProviderMetadata>
}

/** An identity provider without a network. By default each refresh token can be used only once. */
export function createFakeIdp({ lifetimeSeconds = 3600, rotates = true, issuer, metadata: more }: FakeIdpOptions = {}) {
  const grants: Grant[] = []
  const reused: string[] = []
  const revoked: string[] = []
  const good = new Set<string>()
  const answers: Answer[] = []
  let issued = 0
  let queued = 0
  let newest = ''

  async function answer(refreshToken: string | undefined): Promise<TokenSet> {
    const planned = answers.shift() ?? {}
    const number = ++issued
    const usual: TokenSet = {
      accessToken: `access-token-${number}`,
      refreshToken: rotates || refreshToken === undefined ? `refresh-token-${number}` : undefined,
      expiresIn: lifetimeSeconds,
      scope: undefined,
      idToken: undefined
    }
    const given = planned instanceof Error ? planned : await (typeof planned === 'function' ? planned() : planned)
    if (given instanceof Error) throw given
    if (refreshToken !== undefined && !good.has(refreshToken)) {
      reused.push(refreshToken)
      throw new OAuthError({ error: 'invalid_grant', status: 400, endpoint: 'token' })
    }
    const tokenSet = { ...usual, ...given }
    if (tokenSet.refreshToken !== undefined) {
      if (refreshToken !== undefined) good.delete(refreshToken)
      good.add(tokenSet.refreshToken)
      newest = tokenSet.refreshToken
    }
    return tokenSet
  }

  const idp: IdentityProvider = {
    issuer,
    async endpoint(name) {
      return (await this.metadata())[name]
    },
    async takesLogoutHint() {
      const { endSessionEndpoint, quirks } = await this.metadata()
      return endSessionEndpoint !== undefined && !quirks.logsOutWithoutHint
    },
    async metadata() {
      return metadataWith({ issuer, ...more })
    },
    async authorizationUrl() {
      return 'https://idp.example/authorize'
    },
    async endSessionUrl() {
      return 'https://idp.example/logout'
    },
    async inTokenQueue(_queue, _options, send) {
      queued++
      return send().finally(() => {
        queued--
      })
    },
    async authorizationCodeGrant(request) {
      grants.push({ type: 'code', code: request.code, codeVerifier: request.codeVerifier })
      return answer(undefined)
    },
    async refreshTokenGrant(request) {
      grants.push({ type: 'refresh', refreshToken: request.refreshToken, scope: request.scope })
      return answer(request.refreshToken)
    },
    async signingKeys() {
      return { keys: [] }
    },
    async userInfo(): Promise<UserInfo> {
      return { name: 'Ada Lovelace' }
    },
    async revokeRefreshToken(refreshToken) {
      revoked.push(refreshToken)
    },
    replaceCredentials() {},
    credentialsId: () => 'credentials'
  }
  return {
    ...idp,
    /** All token requests, in order. */
    grants,
    /** Refresh tokens that were sent when they were no longer valid. */
    reused,
    revoked,
    /** The number of callers that have a place in a queue for token requests. */
    get queued() {
      return queued
    },
    /** The refresh token that was issued last. */
    get newestRefreshToken() {
      return newest
    },
    /** Sets the responses to the next token requests, one response for each request. `{}` means the usual token set. */
    next(...more: Answer[]): void {
      answers.push(...more)
    },
    /**
     * Makes the refresh token `next` valid instead of `old`, as a provider does that rotates the token but sends an unusable
     * response.
     */
    rotate(old: string, next: string): void {
      good.delete(old)
      good.add(next)
    },
    /**
     * Calls `work`, and holds back the token request after the planned ones until `letGo` is called. Resolves when that request
     * arrives.
     */
    async hold<T>(work: () => Promise<T>, outcome: Error | Partial<TokenSet> = {}) {
      const [begun, begin] = createDeferred()
      const [gate, letGo] = createDeferred()
      answers.push(async () => {
        begin()
        await gate
        if (outcome instanceof Error) throw outcome
        return outcome
      })
      const waiting = work()
      await begun
      return { waiting, letGo }
    }
  }
}

export function oauthError(error: string, retryAfterSeconds?: number): OAuthError {
  return new OAuthError({ error, status: 400, endpoint: 'token', retryAfterSeconds })
}

export function upstreamError(retryAfterSeconds?: number): ProviderError {
  return new ProviderError('token', 'timeout', 'no complete response in time', { retryAfterSeconds })
}

/** A response that asks the client to wait. The provider has not processed the request. */
export function throttledError(status: 429 | 503, retryAfterSeconds?: number): ProviderError {
  return new ProviderError('token', 'invalid_response', `it responded with ${status}`, { status, retryAfterSeconds })
}
