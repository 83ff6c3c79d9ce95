import { fillText, html } from './html.js'
import type { Page } from './page.js'
import type { Texts } from './texts.js'

/** A reason why a browser did not send back a cookie of a login. */
export type LoginLoopReason = 'secure_cookie_on_http' | 'other_host' | 'cookies_blocked' | 'cookie_too_large'

export interface LoginLoopDiagnosis {
  /** The most likely reason comes first. */
  readonly reasons: readonly LoginLoopReason[]
  /** The host on which the login began, for instance `127.0.0.1:8080`, if the page should name it. */
  readonly startedAt?: string | undefined
}

export interface LoginLoop extends LoginLoopDiagnosis {
  /** The address at which people should open the application: the origin and base path of the callback URL. */
  readonly applicationUrl: string
  readonly requestId: string | undefined
  readonly signInPath: string
}

/**
 * Creates the page for a login that succeeded at the provider, but whose cookie did not come back from the browser. Without
 * this page, the browser could be sent to the login again and again (login loop).
 */
export function loginLoopPage(loop: LoginLoop, texts: Texts): Page {
  const { reasons, requestId, applicationUrl, signInPath, startedAt } = loop
  const { actions, details, loginLoop } = texts
  // The link has the host of the application, because a login on the host of this page might fail again.
  const signIn = new URL(signInPath, applicationUrl).href
  const values = {
    address: html`<a href="${applicationUrl}">${applicationUrl}</a>`,
    host: html`<code>${new URL(applicationUrl).host}</code>`,
    startedAt: startedAt === undefined ? undefined : html`<code>${startedAt}</code>`
  }
  const explanations = reasons.map(reason => fillText(loginLoop[textOf(reason, startedAt)], values))
  const code = html`<code>session_cookie_missing</code>`
  return {
    title: loginLoop.title,
    body: html`<p>${loginLoop.happened}</p>
<h2>${reasons.length > 1 ? loginLoop.reasons : loginLoop.reason}</h2>
${reasons.length > 1 ? html`<ol>${explanations.map(item => html`<li>${item}</li>`)}</ol>` : explanations.map(item => html`<p>${item}</p>`)}
<p class="actions"><a class="button" href="${signIn}">${actions.signInAgain}</a><a class="button second" href="${applicationUrl}">${actions.home}</a></p>
<div class="small">
<p>${details.intro}</p>
<p>${fillText(details.errorCode, { code })}</p>
${requestId === undefined ? undefined : html`<p>${fillText(details.request, { id: html`<code>${requestId}</code>` })}</p>`}
</div>`
  }
}

function textOf(reason: LoginLoopReason, startedAt: string | undefined): keyof Texts['loginLoop'] {
  if (reason === 'other_host') return startedAt === undefined ? 'otherHost' : 'otherName'
  return textOfReason[reason]
}

const textOfReason = {
  secure_cookie_on_http: 'secureCookieOnHttp',
  cookies_blocked: 'cookiesBlocked',
  cookie_too_large: 'cookieTooLarge'
} as const satisfies Record<Exclude<LoginLoopReason, 'other_host'>, keyof Texts['loginLoop']>
