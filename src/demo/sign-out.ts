import type Koa from 'koa'
import type Provider from 'oidc-provider'
import type { KoaContextWithOIDC } from 'oidc-provider'
import { paths } from './paths.js'

/**
 * Answers a sign-out request with a redirect if nobody is signed in at the demo. The redirect leads to the application,
 * or to the page that confirms the sign-out if the request contains no address of the application. oidc-provider would
 * answer with a page that needs a script. If the `post_logout_redirect_uri` is not registered, oidc-provider has
 * already removed it.
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

/**
 * Ends the session of the browser at the demo when the application revokes the refresh token of a login. An application
 * revokes the token when the person signs out there, so the next login shows the sign-in page, and the person can
 * choose again.
 */
export function endRevokedSession({ provider }: { provider: Provider }): Koa.Middleware {
  return async function endRevokedSession(ctx, next) {
    await next()
    if (ctx.path !== paths.revocation || ctx.status !== 200) return
    const { sessionUid } = (ctx as KoaContextWithOIDC).oidc.entities.RefreshToken ?? {}
    if (sessionUid === undefined) return
    const session = await provider.Session.findByUid(sessionUid)
    await session?.destroy()
  }
}
