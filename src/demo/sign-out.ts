import type Koa from 'koa'
import type { KoaContextWithOIDC } from 'oidc-provider'
import { paths } from './paths.js'

/**
 * Redirects to the application if nobody is signed in. oidc-provider would answer with a page that a script submits.
 * The checks of oidc-provider still apply, and it has removed a `post_logout_redirect_uri` that is not registered.
 */
export function redirectIfSignedOut(): Koa.Middleware {
  return async function redirectIfSignedOut(ctx, next) {
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
