/**
 * The APIs of the demo: the user info endpoint, and the hubs, to which the API proxy of a demo forwards requests. As with Autodesk
 * Platform Services, user info requires only a valid access token, while the hubs require one with a certain scope.
 */
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { jwtVerify } from 'jose'
import type Koa from 'koa'
import { audience, paths } from './platform.js'
import type { Users } from './users.js'

const REQUIRED_SCOPE = 'data:read'

type AccessTokenReader = ReturnType<typeof createAccessTokenReader>

export function createAccessTokenReader(signingKey: JsonWebKey, now: () => number) {
  const key = createPublicKey({ key: signingKey, format: 'jwk' })
  /** Returns the user id and the scopes if this demo issued the access token of a request and it has not expired. */
  return async function readAccessToken(ctx: Koa.Context) {
    const [, token = ''] = /^bearer (.+)$/i.exec(ctx.get('Authorization')) ?? []
    // An ID token is signed with the same key, but has a different audience.
    const options = { audience, currentDate: new Date(now()), requiredClaims: ['exp'] }
    const { payload } = (await jwtVerify(token, key, options).catch(() => undefined)) ?? {}
    return payload && { userId: String(payload.userid), scopes: payload.scope as readonly string[] }
  }
}

/**
 * Responds to requests for user info. Any valid access token is sufficient, whatever its scopes are. The user info
 * endpoint of oidc-provider cannot be used, because it accepts only tokens in its store. The demo's access tokens are
 * JWTs, which oidc-provider does not store.
 */
export function userInfo(readAccessToken: AccessTokenReader, users: Users): Koa.Middleware {
  return async function userInfo(ctx, next) {
    if (ctx.path !== paths.userInfo || (ctx.method !== 'GET' && ctx.method !== 'POST')) return next()
    ctx.set('Cache-Control', 'no-store')
    const token = await readAccessToken(ctx)
    const user = token && users.find(token.userId)
    if (!user) {
      ctx.status = 401
      ctx.set('WWW-Authenticate', 'Bearer error="invalid_token"')
      ctx.body = {
        error: 'invalid_token',
        error_description: 'The access token is missing, has expired, or was not issued by this demo.'
      }
      return
    }
    ctx.body = {
      sub: user.id,
      name: user.name,
      given_name: user.givenName,
      family_name: user.familyName,
      preferred_username: user.userName,
      email: user.email,
      email_verified: true
    }
  }
}

/** Returns the proxy rule of `--demo`. */
export function demoRules(origin: string): string[] {
  return [`GET /api/hubs/** ${origin}/project/v1/hubs/**`]
}

/** Responds to requests for the list of hubs. Errors have the format of Autodesk Platform Services. */
export function hubs(readAccessToken: AccessTokenReader): Koa.Middleware {
  return async function hubs(ctx, next) {
    if (!/^\/project\/v1\/hubs\/?$/.test(ctx.path)) return next()
    const token = await readAccessToken(ctx)
    if (!token)
      reject(ctx, 401, 'AUTH-006', 'The access token is missing, has expired, or was not issued by this demo.')
    else if (!token.scopes.includes(REQUIRED_SCOPE)) {
      reject(ctx, 403, 'AUTH-010', `The access token lacks the scope ${REQUIRED_SCOPE}.`)
    } else {
      const hub = (id: string, name: string) => ({ type: 'hubs', id, attributes: { name, region: 'EMEA' } })
      ctx.body = { jsonapi: { version: '1.0' }, data: [hub('b.demo-1', 'Bridges'), hub('b.demo-2', 'Towers')] }
    }
  }
}

function reject(ctx: Koa.Context, status: number, errorCode: string, developerMessage: string): void {
  ctx.status = status
  ctx.body = { developerMessage, errorCode, 'more info': 'This is the demo.' }
}
