import { fillText, html } from './html.js'
import type { Page } from './page.js'
import type { Texts } from './texts.js'

/**
 * The reason for a status of 403: another site has started the request, a script has requested a URL that only a user can open, or
 * something else.
 */
export type Refusal = 'otherSite' | 'byScript' | 'refused'

export interface ErrorDetails {
  readonly status: number
  /** The code of the JSON body, such as `access_denied`. */
  readonly error: string
  readonly description: string
  /** The id of the request in the log, or undefined if no log line contains it. */
  readonly requestId: string | undefined
  /** True for the callback of a login, whose statuses 400 and 403 have separate explanations. */
  readonly inLogin: boolean
  /** The reason for a status of 403, if it is what the browser says about the request. */
  readonly refusal?: Refusal | undefined
  /** True if the browser can repeat the request by opening its URL. */
  readonly canOpenAgain?: boolean
  /** True if this error has not ended the session of the browser, and the browser can open the page again. */
  readonly isSignedIn: boolean
  /** True if the session of the browser may be over. The page then offers a new login. */
  readonly mayBeOver?: boolean
  /** The URL that "Sign in again" opens, for instance `/api/auth/login?return_to=%2Fmodels`. */
  readonly signInPath: string
  /** Undefined if there is no start page. */
  readonly homePath: string | undefined
  /** The seconds after which the browser automatically opens the page again, or undefined if it does not. */
  readonly retryAfterSeconds?: number | undefined
}

/**
 * Creates an error page. The page explains what happened and what to do next. It also shows details for support.
 * @param language the language tag of the texts
 */
export function errorPage(details: ErrorDetails, texts: Texts, language: string): Page {
  const { status, error, description, requestId, signInPath, homePath, retryAfterSeconds } = details
  const { topic, action, title = texts[topic].title } = explanationOf(details, texts)
  const when = retryAfterSeconds === undefined ? undefined : delayText(retryAfterSeconds, language)
  const next = when === undefined || topic === 'mayBeOver' ? texts[topic].next : texts.busy.next
  const signInLabel = topic === 'notSignedIn' ? texts.actions.signIn : texts.actions.signInAgain
  const signIn = html`<a class="button" href="${signInPath}">${signInLabel}</a>`
  const home = (look: string) =>
    homePath === undefined ? undefined : html`<a class="${look}" href="${homePath}">${texts.actions.home}</a>`
  const actions = {
    'sign-in': [signIn, home('button second')],
    home: [home('button')],
    // An empty `href` means the URL of the page itself.
    retry: [html`<a class="button" href="">${texts.actions.tryAgain}</a>`, home('button second')],
    // Frameworks such as Turbo do not fetch a link with a target.
    open: [html`<a class="button" href="" target="_top">${texts.actions.tryAgain}</a>`, home('button second')]
  }
  const quoted = {
    code: html`<code>${status} ${error}</code>`,
    // All other descriptions are for support and stay in English, like the JSON body.
    description: topic === 'notSignedIn' ? texts.details.noSession : html`<span lang="en">${description}</span>`
  }
  return {
    title,
    body: html`<p>${texts[topic].happened}</p>
<p>${fillText(next, { when })}</p>
<p class="actions">${actions[action]}</p>
<div class="small">
<p>${texts.details.intro}</p>
<p>${fillText(texts.details.error, quoted)}</p>
${requestId === undefined ? undefined : html`<p>${fillText(texts.details.request, { id: html`<code>${requestId}</code>` })}</p>`}
</div>`
  }
}

type Topic = Exclude<keyof Texts, 'actions' | 'details' | 'loginLoop'>

interface Choice {
  /** The group of texts that explains the error. */
  readonly topic: Topic
  readonly action: 'sign-in' | 'home' | 'retry' | 'open'
  /** Replaces the title of the topic. */
  readonly title?: string
}

// Returns the first explanation that matches. More specific explanations come first.
function explanationOf(details: ErrorDetails, texts: Texts): Choice {
  const { status, error, inLogin, isSignedIn, mayBeOver, retryAfterSeconds } = details
  const { refusal, canOpenAgain } = details
  if (mayBeOver) return { topic: 'mayBeOver', action: 'sign-in' }
  if (error === 'upstream_unauthorized') return { topic: 'apiRefused', action: 'sign-in' }
  if (isSignedIn && status > 500) return { topic: 'stillSignedIn', action: 'retry' }
  if (retryAfterSeconds !== undefined) {
    const title = status === 504 ? texts.providerSlow.title : texts.busy.title
    return { topic: 'busy', action: 'sign-in', title }
  }
  if (refusal !== undefined) {
    return { topic: refusal, action: refusal !== 'refused' && canOpenAgain ? 'open' : 'home' }
  }
  const ofRoute = inLogin ? byStatusInLogin : byStatus
  // The URL of the callback cannot be opened again, because its code is valid only once.
  const anyFault: Choice = { topic: 'serverError', action: canOpenAgain && !inLogin ? 'retry' : 'sign-in' }
  return byError[error] ?? ofRoute[status] ?? byStatus[status] ?? (status < 500 ? anyRequest : anyFault)
}

/** Returns a text such as "in 7 seconds". */
function delayText(seconds: number, language: string): string {
  const format = new Intl.RelativeTimeFormat(language)
  return seconds > 90 ? format.format(Math.ceil(seconds / 60), 'minute') : format.format(Math.max(1, seconds), 'second')
}

const anyRequest: Choice = { topic: 'invalidRequest', action: 'home' }

const byError: Readonly<Record<string, Choice | undefined>> = {
  account_not_allowed: { topic: 'accountNotAllowed', action: 'sign-in' },
  insufficient_user_authentication: { topic: 'strongerSignInNeeded', action: 'sign-in' },
  consent_required: { topic: 'consentMissing', action: 'sign-in' },
  provider_unreachable: { topic: 'providerUnreachable', action: 'sign-in' },
  session_too_large: { topic: 'sessionTooLarge', action: 'home' }
}

const byStatusInLogin: Readonly<Record<number, Choice | undefined>> = {
  400: { topic: 'loginNotCompleted', action: 'sign-in' },
  403: { topic: 'accessNotGranted', action: 'sign-in' }
}

const byStatus: Readonly<Record<number, Choice | undefined>> = {
  401: { topic: 'notSignedIn', action: 'sign-in' },
  403: { topic: 'refused', action: 'home' },
  404: { topic: 'notFound', action: 'home' },
  405: { topic: 'methodNotAllowed', action: 'home' },
  413: { topic: 'requestTooLarge', action: 'home' },
  502: { topic: 'providerError', action: 'sign-in' },
  503: { topic: 'providerUnavailable', action: 'sign-in' },
  504: { topic: 'providerSlow', action: 'sign-in' }
}

/** A reason why a browser did not send back a cookie of a login. Each reason has a text of the same name. */
export type LoginLoopReason = 'secureCookieOnHttp' | 'otherHost' | 'cookiesBlocked' | 'cookieTooLarge'

export interface LoginLoopDiagnosis {
  /** The code of the error: the cookie that is missing. */
  readonly error: 'login_cookie_missing' | 'session_cookie_missing'
  /** The most likely reason comes first. */
  readonly reasons: readonly LoginLoopReason[]
  /** The host on which the login began, for instance `127.0.0.1:8080`, if the page should name it. */
  readonly startedAt?: string | undefined
}

export interface LoginLoop extends LoginLoopDiagnosis {
  /** The URL under which users should open the application: the origin and base path of the callback URL. */
  readonly applicationUrl: string
  readonly requestId: string | undefined
  readonly signInPath: string
}

/**
 * Creates the page for a login that succeeded at the provider, but whose cookie did not come back from the browser.
 * Without this page, the browser could be sent to the login again and again (login loop).
 */
export function loginLoopPage(loop: LoginLoop, texts: Texts): Page {
  const { error, reasons, requestId, applicationUrl, signInPath, startedAt } = loop
  const { actions, details, loginLoop } = texts
  // The link leads to the callback's host, because a login on the host of this page might fail again.
  const signIn = new URL(signInPath, applicationUrl).href
  const values = {
    address: html`<a href="${applicationUrl}">${applicationUrl}</a>`,
    host: html`<code>${new URL(applicationUrl).host}</code>`,
    startedAt: startedAt === undefined ? undefined : html`<code>${startedAt}</code>`
  }
  const explanations = reasons.map(reason => {
    const text = reason === 'otherHost' && startedAt !== undefined ? 'otherName' : reason
    return fillText(loginLoop[text], values)
  })
  const code = html`<code>${error}</code>`
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
