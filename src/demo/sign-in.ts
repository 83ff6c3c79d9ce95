/** The sign-in page of the demo, and what the demo changes in the sign-out of oidc-provider. */
import type Koa from 'koa'
import type Provider from 'oidc-provider'
import type { KoaContextWithOIDC } from 'oidc-provider'
import { SessionNotFound } from 'oidc-provider/lib/helpers/errors.js'
import { readBody } from './apis.js'
import type { DemoPages } from './pages.js'
import { type People, tidyName } from './people.js'
import { paths, splitScope } from './platform.js'

interface SignInOptions {
  provider: Provider
  people: People
  pages: DemoPages
}

const maxNameLength = 100
const maxFormBytes = 8 * 1024

/** Serves the sign-in page, on which a person chooses a name and grants or denies the requested scopes. */
export function signIn({ provider, people, pages }: SignInOptions): Koa.Middleware {
  return async function signIn(ctx, next) {
    if (!ctx.path.startsWith(`${paths.signIn}/`)) return next()
    if (ctx.method !== 'GET' && ctx.method !== 'POST') {
      ctx.set('Allow', 'GET, POST')
      return ctx.throw(405)
    }
    try {
      await handle(ctx)
    } catch (error) {
      if (!(error instanceof SessionNotFound)) throw error
      pages.signInExpired(ctx)
    }
  }

  async function handle(ctx: Koa.Context) {
    const interaction = await provider.interactionDetails(ctx.req, ctx.res)
    const action = `${paths.signIn}/${interaction.uid}`
    // The interaction cookie is valid only for its own path. If a request for another path has the cookie, no browser sent
    // the request.
    if (ctx.path !== action) throw new SessionNotFound('the sign-in belongs to another browser')
    const { session: { accountId } = {} } = interaction
    const signedIn = accountId === undefined ? undefined : people.find(accountId)?.name
    const page = { action, scopes: splitScope(interaction.params.scope), signedIn }
    if (ctx.method === 'GET') return pages.signIn(ctx, page)

    const form = await readForm(ctx)
    if (form.has('deny'))
      return finishSignIn(ctx, { error: 'access_denied', error_description: 'The user denied the request.' })

    const typed = form.get('user') ?? ''
    const name = tidyName(typed)
    if (name === '') return pages.signIn(ctx, { ...page, problem: 'Type a name. Any name works.' })
    if (name.length > maxNameLength) {
      return pages.signIn(ctx, { ...page, typed, problem: `Use ${maxNameLength} characters or fewer.` })
    }
    const { id } = people.signIn(name)
    await endOtherSession(ctx, interaction, id)
    return finishSignIn(ctx, { login: { accountId: id }, select_account: {} })
  }

  async function finishSignIn(ctx: Koa.Context, result: Parameters<Provider['interactionResult']>[2]) {
    ctx.status = 303
    ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, result))
  }

  // If another user is signed in, oidc-provider would first show a sign-out page that needs a script. A person who chooses
  // another user wants to sign out the first, so this function ends the old session without that page.
  async function endOtherSession(
    ctx: Koa.Context,
    interaction: Awaited<ReturnType<Provider['interactionDetails']>>,
    id: string
  ) {
    const session = await provider.Session.get(ctx)
    if (session.accountId === undefined || session.accountId === id) return
    await session.destroy()
    interaction.session = undefined
    await interaction.persist()
  }
}

/**
 * Responds to a sign-out request with a redirect if nobody is signed in at the demo. The redirect leads to the application,
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

/** Reads a submitted form. Throws an HTTP error 415 or 413 if the body is not a form or is too large. */
async function readForm(ctx: Koa.Context): Promise<URLSearchParams> {
  if (!ctx.is('application/x-www-form-urlencoded')) return ctx.throw(415)
  return new URLSearchParams((await readBody(ctx, maxFormBytes)) ?? ctx.throw(413))
}
