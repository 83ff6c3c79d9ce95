import type Koa from 'koa'
import type { KoaContextWithOIDC } from 'oidc-provider'
import { paths } from './paths.js'

/** The number of requests to each endpoint of the demo identity provider, including rejected requests. */
export interface DemoCalls {
  authorization: number
  /** Token requests with `grant_type=authorization_code`. */
  authorizationCode: number
  /** Token requests with `grant_type=refresh_token`. */
  refreshToken: number
  /** Refresh requests with a refresh token that was already spent. Each of them ended its grant. */
  reusedRefreshToken: number
  userInfo: number
  revocation: number
  endSession: number
}

export function createCalls(): DemoCalls {
  return {
    authorization: 0,
    authorizationCode: 0,
    refreshToken: 0,
    reusedRefreshToken: 0,
    userInfo: 0,
    revocation: 0,
    endSession: 0
  }
}

/** Creates a middleware that counts each request in `calls` before the response is sent. */
export function countCalls(calls: DemoCalls): Koa.Middleware {
  const countByPath = new Map<string, keyof DemoCalls>([
    [paths.authorization, 'authorization'],
    [paths.userInfo, 'userInfo'],
    [paths.revocation, 'revocation'],
    [paths.endSession, 'endSession']
  ])

  return async function countCalls(ctx, next) {
    const call = countByPath.get(ctx.path)
    if (call) calls[call]++
    await next()
    if (ctx.path === paths.token) countTokenRequest((ctx as KoaContextWithOIDC).oidc)
  }

  // The grant type is known only after oidc-provider has parsed the body. The body of a request with a wrong method is not
  // parsed.
  function countTokenRequest(oidc: KoaContextWithOIDC['oidc'] | undefined) {
    if (oidc?.body?.grant_type === 'authorization_code') calls.authorizationCode++
    if (oidc?.body?.grant_type !== 'refresh_token') return
    calls.refreshToken++
    if (oidc.entities.RefreshToken?.consumed) calls.reusedRefreshToken++
  }
}
