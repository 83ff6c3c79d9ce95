import { html } from './html.js'
import { renderPage } from './page.js'

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
 * Renders the page for a login that succeeded at the provider, but whose cookie did not come back from the browser. Without
 * this page, the browser could be sent to the login again and again (login loop).
 */
export function loginLoopPage(loop: LoginLoop): string {
  const { reasons, requestId, applicationUrl, signInPath } = loop
  // The link has the host of the application, because a login on the host of this page might fail again.
  const signIn = new URL(signInPath, applicationUrl).href
  const explanations = reasons.map(reason => explain[reason](loop))
  return renderPage({
    title: 'You signed in, but the browser did not stay signed in',
    body: html`<p>Signing in worked, but your browser did not send back a cookie that this site needs to keep you signed in. The next
page would therefore ask you to sign in again.</p>
<h2>${reasons.length > 1 ? 'The likely reasons' : 'The likely reason'}</h2>
${reasons.length > 1 ? html`<ol>${explanations.map(item => html`<li>${item}</li>`)}</ol>` : explanations.map(item => html`<p>${item}</p>`)}
<p class="actions"><a class="button" href="${signIn}">Sign in again</a><a class="button second" href="${applicationUrl}">Go to the start page</a></p>
<div class="small">
<p>If you ask for help, quote this:</p>
<p>Error <code>session_cookie_missing</code></p>
${requestId === undefined ? undefined : html`<p>Request <code>${requestId}</code></p>`}
</div>`
  })
}

const explain = {
  secure_cookie_on_http: ({
    applicationUrl: url
  }) => html`You may have opened this site over plain http, but browsers keep this cookie over https only.
Open <a href="${url}">${url}</a> instead.`,
  other_host: ({ applicationUrl: url, startedAt }) =>
    startedAt === undefined
      ? html`You may have opened this site under a host name other than <code>${new URL(url).host}</code>, to which sign-in returns.
Browsers keep separate cookies for each host name. Open <a href="${url}">${url}</a> instead.`
      : html`You opened <code>${startedAt}</code>, but sign-in returns to <code>${new URL(url).host}</code>. Both names mean this
machine, but browsers keep separate cookies for each name. Open <a href="${url}">${url}</a> instead.`,
  cookies_blocked:
    () => html`The browser blocks cookies for this site. Allow them in its settings, and check your privacy extensions. If this page is
shown inside another site, the browser often blocks its cookies.`,
  cookie_too_large:
    () => html`The data of your account is larger than the cookies that the browser, or a proxy in front of this server, accepts.
Tell the people who run this application that it must request less access.`
} satisfies Record<LoginLoopReason, (loop: LoginLoop) => ReturnType<typeof html>>
