import { html } from './html.js'
import { renderPage } from './page.js'

/** Why a browser may have kept no session cookie although it was just given one. */
export type LoginLoopReason = 'secure_cookie_on_http' | 'other_host' | 'cookies_blocked' | 'cookie_too_large'

export interface LoginLoop {
  /** The likeliest first. */
  readonly reasons: readonly LoginLoopReason[]
  /** Where the application has to be opened: the callback's origin and base path. */
  readonly applicationUrl: string
  readonly requestId: string
  readonly signInPath: string
  readonly homePath: string
}

/** Shown once in place of the next round of a login that succeeds at the provider and is forgotten by the browser. */
export function loginLoopPage({ reasons, applicationUrl, requestId, signInPath, homePath }: LoginLoop): string {
  const explanations = reasons.map(reason => explain[reason](applicationUrl))
  return renderPage({
    title: 'You signed in, but the browser did not stay signed in',
    body: html`<p>Signing in worked. The cookie that keeps you signed in did not come back from your browser, so the next page would
only have sent you to sign in again.</p>
<h2>${reasons.length > 1 ? 'The likely reasons' : 'The likely reason'}</h2>
${reasons.length > 1 ? html`<ol>${explanations.map(item => html`<li>${item}</li>`)}</ol>` : explanations.map(item => html`<p>${item}</p>`)}
<p class="actions"><a class="button" href="${signInPath}">Sign in again</a><a class="button second" href="${homePath}">Go to the start page</a></p>
<div class="small">
<p>If you ask for help, quote this:</p>
<p>Error <code>session_cookie_missing</code></p>
<p>Request <code>${requestId}</code></p>
</div>`
  })
}

const explain = {
  secure_cookie_on_http: url => html`This page is open over plain http, and the cookie may only travel over https. Open
<a href="${url}">${url}</a> instead.`,
  other_host:
    url => html`This page is open under another host name than the one sign-in leads back to, and cookies are kept for
each host. Open <a href="${url}">${url}</a> instead.`,
  cookies_blocked:
    () => html`The browser blocks cookies for this site. Allow them in its settings, and look at extensions that
protect privacy; a page shown inside another site is often not allowed any.`,
  cookie_too_large:
    () => html`Your account brings more data than the browser, or something on the way to this server, accepts in
cookies. The people who run this application can have it ask for less.`
} satisfies Record<LoginLoopReason, (url: string) => ReturnType<typeof html>>
