import type Koa from 'koa'
import type { KoaContextWithOIDC } from 'oidc-provider'
import { paths } from './paths.js'

/**
 * Lets a sign-out pass when there is nobody to sign out: oidc-provider would answer with a page that submits itself by
 * script. Its checks of the parameters stay, and it has already dropped a `post_logout_redirect_uri` it cannot vouch for.
 */
export function signOutOfNothing(): Koa.Middleware {
  return async function signOutOfNothing(ctx, next) {
    await next()
    if (ctx.path !== paths.endSession || ctx.method !== 'GET' || ctx.status !== 200) return
    const { oidc } = ctx as KoaContextWithOIDC
    if (oidc.session?.accountId !== undefined) return
    const target = new URL(String(oidc.params?.post_logout_redirect_uri ?? oidc.urlFor('end_session_success')))
    if (typeof oidc.params?.state === 'string') target.searchParams.set('state', oidc.params.state)
    ctx.status = 303
    ctx.redirect(target.href)
  }
}
