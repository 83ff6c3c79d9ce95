import type Koa from 'koa'
import type { ErrorOut } from 'oidc-provider'
import { type Html, html, renderPage, securityPolicyFor } from '../pages/index.js'
import { offeredPeople } from './people.js'

export interface SignInPage {
  action: string
  scopes: readonly string[]
  /** The name of the person who is signed in at the demo with this browser. */
  signedIn: string | undefined
  /** The reason why the last attempt failed. */
  problem?: string
  /** The name that was typed in the last attempt. The form contains it again. */
  typed?: string
}

export type DemoPages = ReturnType<typeof createDemoPages>

/** The pages of the demo identity provider. Every page works without a script and leads back to the application. */
export function createDemoPages({ callbackUrl, homeUrl }: { callbackUrl: string; homeUrl: string }) {
  // When the sign-in form or the sign-out form is submitted, the demo redirects to the application. Browsers check this
  // redirect against `form-action`.
  const formPolicy = securityPolicyFor(["'self'", new URL(callbackUrl).origin])
  const plainPolicy = securityPolicyFor([])
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
cookies for this address. Start again from the application.</p>
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
${error === 'invalid_redirect_uri' ? registeredCallback(callbackUrl) : undefined}
${backLink}`
      })
    }
  }
}

function registeredCallback(callbackUrl: string): Html {
  return html`<p>The application must send exactly the callback URL that is registered here:</p>
<p><code>${callbackUrl}</code></p>`
}

// The page has three forms, so that Enter in the name field submits the typed name. In a single form, Enter would press
// the first button of the page.
function signInForm({ action, scopes, signedIn, problem, typed }: SignInPage): Html {
  return html`<p>This identity provider is part of the server, so that you can try the server out. It has no passwords.</p>
${signedIn === undefined ? undefined : html`<p>This browser is signed in here as <strong>${signedIn}</strong>. Choose the same person or another one.</p>`}
<form method="post" action="${action}">
<p class="label" id="offered">Sign in as</p>
<div class="choices" role="group" aria-labelledby="offered">${offeredPeople.map(
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
