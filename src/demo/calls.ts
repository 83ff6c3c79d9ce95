import type Koa from 'koa'
import type { KoaContextWithOIDC } from 'oidc-provider'
import { paths } from './paths.js'

/** How often each endpoint was asked, refused requests included. */
export interface DemoCalls {
  authorization: number
  /** Token requests with `grant_type=authorization_code`. */
  authorizationCode: number
  /** Token requests with `grant_type=refresh_token`. */
  refreshToken: number
  /** Those among them whose refresh token had been spent before; each one ended its grant. */
  reusedRefreshToken: number
  userInfo: number
  revocation: number
  endSession: number
}

export function noCalls(): DemoCalls {
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

/** Counts into `calls`, before the answer leaves. */
export function countCalls(calls: DemoCalls): Koa.Middleware {
  const plain = new Map<string, keyof DemoCalls>([
    [paths.authorization, 'authorization'],
    [paths.userInfo, 'userInfo'],
    [paths.revocation, 'revocation'],
    [paths.endSession, 'endSession']
  ])

  return async function countCalls(ctx, next) {
    const call = plain.get(ctx.path)
    if (call) calls[call]++
    await next()
    if (ctx.path === paths.token) countTokenRequest((ctx as KoaContextWithOIDC).oidc)
  }

  // oidc-provider reads the body, so what was asked for is known afterwards; it is not there if the method was wrong.
  function countTokenRequest(oidc: KoaContextWithOIDC['oidc'] | undefined) {
    if (oidc?.body?.grant_type === 'authorization_code') calls.authorizationCode++
    if (oidc?.body?.grant_type !== 'refresh_token') return
    calls.refreshToken++
    if (oidc.entities.RefreshToken?.consumed) calls.reusedRefreshToken++
  }
}
