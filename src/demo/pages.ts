/** The HTML pages of the demo, its sign-in, and its changes to oidc-provider's sign-out. */
import type Koa from 'koa'
import type Provider from 'oidc-provider'
import type { ErrorOut, Interaction, KoaContextWithOIDC } from 'oidc-provider'
import { SessionNotFound } from 'oidc-provider/lib/helpers/errors.js'
import { readBody } from '../base/read-body.js'
import { type Html, html, renderPage, securityPolicyFor } from '../pages/index.js'
import { paths, splitScope } from './platform.js'
import { offeredUsers, tidyName, type Users } from './users.js'

interface SignInPage {
  action: string
  scopes: readonly string[]
  /** The name of the user who is signed in to the demo in this browser. */
  signedIn: string | undefined
  /** The reason why the last attempt failed. */
  problem?: string
  /** The name that was typed in the last attempt. The name field is filled in with it. */
  typed?: string
}

export type DemoPages = ReturnType<typeof createDemoPages>

/** The pages of the demo identity provider. Every page works without a script and leads back to the application. */
export function createDemoPages({ callbackUrl, homeUrl }: { callbackUrl: string; homeUrl: string }) {
  // When the sign-in form or the sign-out form is submitted, the demo redirects to the application. Browsers check this
  // redirect against `form-action`.
  const formPolicy = securityPolicyFor({ formTargets: ["'self'", new URL(callbackUrl).origin] })
  const plainPolicy = securityPolicyFor()
  const registered = html`<p>The application must send exactly the callback URL that is registered here:</p>
<p><code>${callbackUrl}</code></p>`
  const backLink = html`<p class="actions"><a class="button" href="${homeUrl}">Back to the application</a></p>`

  function send(ctx: Koa.Context, status: number, policy: string, page: { title: string; body: Html }) {
    ctx.status = status
    ctx.type = 'html'
    ctx.set({
      'Cache-Control': 'no-store',
      'Content-Security-Policy': policy,
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff'
    })
    ctx.body = renderPage(page)
  }

  return {
    signIn(ctx: Koa.Context, page: SignInPage) {
      send(ctx, page.problem === undefined ? 200 : 422, formPolicy, { title: 'Demo sign-in', body: signInForm(page) })
    },
    signInExpired(ctx: Koa.Context) {
      send(ctx, 400, plainPolicy, {
        title: 'This sign-in is over',
        body: html`<p>This sign-in was finished or cancelled in another tab, it took longer than an hour, or this browser does not store
cookies for this site. Start again from the application.</p>
${backLink}`
      })
    },
    signOut(ctx: Koa.Context, { action, xsrf }: { action: string; xsrf: string }) {
      send(ctx, 200, formPolicy, {
        title: 'Sign out of the demo?',
        body: html`<p>You are also signed in at the demo identity provider. If you stay signed in, your next login skips the sign-in
page.</p>
<form method="post" action="${action}">
<input type="hidden" name="xsrf" value="${xsrf}">
<p class="actions"><button class="button" name="logout" value="yes">Sign out</button><button class="button second">Stay signed in</button></p>
</form>`
      })
    },
    signedOut(ctx: Koa.Context) {
      send(ctx, 200, plainPolicy, {
        title: 'You are signed out',
        body: html`<p>The demo identity provider has ended your session. Your next login shows the sign-in page.</p>\n${backLink}`
      })
    },
    failed(ctx: Koa.Context, { error, error_description: description }: ErrorOut) {
      send(ctx, ctx.status, plainPolicy, {
        title: 'The demo refuses this request',
        body: html`<p>The application sent a request that an identity provider must not accept. Nothing was changed.</p>
<p>Error <code>${error}</code>${description === undefined ? undefined : html`: ${description}`}</p>
${error === 'invalid_redirect_uri' ? registered : undefined}
${backLink}`
      })
    }
  }
}

// The page has three forms. In a single form, Enter in the name field would press the first button of the page, and the
// typed name would be ignored.
function signInForm({ action, scopes, signedIn, problem, typed }: SignInPage): Html {
  return html`<p>This identity provider is part of the server, so that you can try the server out. It has no passwords.</p>
${signedIn === undefined ? undefined : html`<p>This browser is signed in here as <strong>${signedIn}</strong>. Choose the same user or another one.</p>`}
<form method="post" action="${action}">
<p class="label" id="offered">Sign in as</p>
<div class="choices" role="group" aria-labelledby="offered">${offeredUsers.map(
    (name, index) =>
      html`<button class="${index === 0 ? 'button' : 'button second'}" name="user" value="${name}">${name}</button>`
  )}</div>
</form>
<form method="post" action="${action}">
<label for="user">Any other user name</label>
${problem === undefined ? undefined : html`<p id="problem" role="alert">${problem}</p>`}
<div class="field"><input id="user" name="user" value="${typed}" autocomplete="username" autocapitalize="words" spellcheck="false" maxlength="100" required${
    problem === undefined ? undefined : html` autofocus aria-invalid="true" aria-describedby="problem"`
  }><button class="button second">Sign in</button></div>
</form>
<form class="small" method="post" action="${action}">
<div class="field"><p>The application requests <code>${scopes.join(' ')}</code>. Signing in grants it.</p><button class="button second" name="deny" value="yes">Deny</button></div>
</form>`
}

const maxNameLength = 100
const maxFormBytes = 8 * 1024

/** Serves the sign-in page, on which a user chooses a name and grants or denies the requested scopes. */
export function signIn(provider: Provider, users: Users, pages: DemoPages): Koa.Middleware {
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
    // Browsers send the interaction cookie only to the path of its sign-in. A request with this cookie but a different path
    // cannot come from a browser, so it is rejected.
    if (ctx.path !== action) throw new SessionNotFound('the sign-in belongs to another browser')
    const { session: { accountId } = {} } = interaction
    const signedIn = accountId === undefined ? undefined : users.find(accountId)?.name
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
    const { id } = users.signIn(name)
    await endOtherSession(ctx, interaction, id)
    return finishSignIn(ctx, { login: { accountId: id }, select_account: {} })
  }

  async function finishSignIn(ctx: Koa.Context, result: Parameters<Provider['interactionResult']>[2]) {
    ctx.status = 303
    ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, result))
  }

  // If another account is signed in, oidc-provider would first show a sign-out page that needs a script. A user who
  // chooses another account wants to sign out of the current account, so this function ends the old session without
  // showing the sign-out page.
  async function endOtherSession(ctx: Koa.Context, interaction: Interaction, id: string) {
    const session = await provider.Session.get(ctx)
    if (session.accountId === undefined || session.accountId === id) return
    await session.destroy()
    interaction.session = undefined
    await interaction.persist()
  }
}

/**
 * Responds to a sign-out request with a redirect if nobody is signed in at the demo, because oidc-provider would respond with a
 * page that needs a script. The redirect leads to the `post_logout_redirect_uri`. If this URL is not registered, oidc-provider
 * has removed it. Without this URL, the redirect leads to the page that confirms the sign-out.
 */
export const redirectIfSignedOut: Koa.Middleware = async function redirectIfSignedOut(ctx, next) {
  await next()
  if (ctx.path !== paths.endSession || ctx.method !== 'GET' || ctx.status !== 200) return
  const { oidc } = ctx as KoaContextWithOIDC
  if (oidc.session?.accountId !== undefined) return
  const target = new URL(String(oidc.params?.post_logout_redirect_uri ?? oidc.urlFor('end_session_success')))
  if (typeof oidc.params?.state === 'string') target.searchParams.set('state', oidc.params.state)
  ctx.status = 303
  ctx.redirect(target.href)
}

/**
 * Ends the browser's session at the demo when the application revokes a refresh token, which it does when the user
 * signs out of the application. The next login then shows the sign-in page, so the user can choose another account.
 */
export function endRevokedSession(provider: Provider): Koa.Middleware {
  return async function endRevokedSession(ctx, next) {
    await next()
    if (ctx.path !== paths.revocation || ctx.status !== 200) return
    const { sessionUid } = (ctx as KoaContextWithOIDC).oidc.entities.RefreshToken ?? {}
    if (sessionUid === undefined) return
    const session = await provider.Session.findByUid(sessionUid)
    await session?.destroy()
  }
}

/** Reads a submitted form. Throws the HTTP error 415 if the body is not a form, or 413 if the body is too large. */
async function readForm(ctx: Koa.Context): Promise<URLSearchParams> {
  if (!ctx.is('application/x-www-form-urlencoded')) return ctx.throw(415)
  return new URLSearchParams((await readBody(ctx.req, maxFormBytes)) ?? ctx.throw(413))
}
