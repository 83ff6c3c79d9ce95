import type Koa from 'koa'
import type { AccessTokenReader } from './access-token.js'
import { paths } from './paths.js'
import type { People } from './people.js'

/**
 * Answers requests for user info. As on the platform, a valid access token is enough, whatever its scopes are. The user info
 * endpoint of oidc-provider cannot be used, because it accepts only tokens in its store. Our access tokens are JWTs, which
 * oidc-provider does not store.
 */
export function userInfo({ tokens, people }: { tokens: AccessTokenReader; people: People }): Koa.Middleware {
  return async function userInfo(ctx, next) {
    if (ctx.path !== paths.userInfo || (ctx.method !== 'GET' && ctx.method !== 'POST')) return next()
    ctx.set('Cache-Control', 'no-store')
    const id = tokens.userIdOf(ctx)
    const person = id === undefined ? undefined : people.find(id)
    if (!person) {
      ctx.status = 401
      ctx.set('WWW-Authenticate', 'Bearer error="invalid_token"')
      ctx.body = {
        error: 'invalid_token',
        error_description: 'The access token is missing, has expired, or was not issued by this demo.'
      }
      return
    }
    ctx.body = {
      sub: person.id,
      name: person.name,
      given_name: person.givenName,
      family_name: person.familyName,
      preferred_username: person.userName,
      email: person.email,
      email_verified: true
    }
  }
}
