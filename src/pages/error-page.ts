import { fillText, html } from './html.js'
import type { Page } from './page.js'
import type { Texts } from './texts.js'

/**
 * The reason for a status of 403: another site has started the request, a script has requested a URL that only a user can open, or
 * something else.
 */
export type Refusal = 'otherSite' | 'byScript' | 'refused'

/** The way on that an error page offers. `docs/pages/error-pages.md` lists all of them. */
type Way = 'signIn' | 'signInInNewTab' | 'tryAgain' | 'tryAgainInTab' | 'back' | 'home' | 'homeInNewTab'

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
  /** The method with which the page asks in the background. The default is HEAD. */
  readonly asksWith?: 'GET' | 'HEAD'
  /** For a form that the browser has sent: `executed` if a handler or an API may have got it. */
  readonly form?: 'unsent' | 'executed' | undefined
  /** The page of the form, if it is known and not the start page. */
  readonly formPath?: string | undefined
  /** The site that shows the page in a frame, if the page is in a frame. */
  readonly frame?: 'own' | 'other' | undefined
  /** True if this error has not ended the session of the browser, and the browser can open the page again. */
  readonly isSignedIn: boolean
  /** True if the session of the browser may be over. The page then offers a new login. */
  readonly mayBeOver?: boolean
  /** The URL that "Sign in again" opens, for instance `/api/auth/login?return_to=%2Fmodels`. */
  readonly signInPath: string
  /** Undefined if there is no start page. */
  readonly homePath: string | undefined
  /** The seconds after which the browser automatically asks again, or undefined if it does not. */
  readonly retryAfterSeconds?: number | undefined
  /** The URL that the browser then opens. The default is the URL of the page. */
  readonly retryPath?: string | undefined
  /** The seconds after which the page offers a sign-in, too. At most 0 if it does so immediately, undefined if it would not help. */
  readonly signInAfterSeconds?: number | undefined
  /** The cookies of a request whose headers are too large. */
  readonly cookies?: readonly SentCookie[]
}

export interface SentCookie {
  readonly name: string
  readonly bytes: number
}

/**
 * Creates an error page. The page explains what happened and what to do next. It also shows details for support.
 * @param language the language tag of the texts
 */
export function errorPage(details: ErrorDetails, texts: Texts, language: string): Page {
  const { status, error, description, requestId, canOpenAgain, cookies = [] } = details
  const { retryAfterSeconds, retryPath } = details
  const [, , topic, way, titled = topic] = explanationOf(details)
  const when = retryAfterSeconds === undefined ? undefined : delayText(retryAfterSeconds, language)
  const next = when === undefined || topic === 'mayBeOver' ? texts[topic].next : texts.busy.next
  const quoted = {
    code: html`<code>${status} ${error}</code>`,
    // All other descriptions are for support and stay in English, like the JSON body.
    description: topic === 'notSignedIn' ? texts.details.noSession : html`<span lang="en">${description}</span>`
  }
  const buttons = buttonsOf(way, details, topic, texts)
  const waiting = html` role="status" data-while="503 504" data-seconds="${retryAfterSeconds}" data-again="${texts.busy.again}" data-next="${retryPath}" data-method="${details.asksWith ?? 'HEAD'}"`
  return {
    title: texts[titled].title,
    refresh: retryAfterSeconds === undefined ? undefined : { seconds: retryAfterSeconds, path: retryPath },
    body: html`<p>${texts[topic].happened}</p>
${cookies.length === 0 ? undefined : html`<ul>${cookies.map(({ name, bytes }) => html`<li><code>${name}</code>: ${bytes.toLocaleString(language)}</li>`)}</ul>`}
<p${retryAfterSeconds !== undefined && canOpenAgain ? waiting : undefined}>${fillText(next, { when })}</p>
${buttons.length === 0 ? undefined : html`<p class="actions">${buttons}</p>`}
<div class="small">
<p>${texts.details.intro}</p>
<p>${fillText(texts.details.error, quoted)}</p>
${requestId === undefined ? undefined : html`<p>${fillText(texts.details.request, { id: html`<code>${requestId}</code>` })}</p>`}
</div>`
  }
}

/** Returns the main button, and besides it the buttons for other ways on. */
function buttonsOf(way: Way, details: ErrorDetails, topic: Topic, { actions }: Texts) {
  const { signInPath, homePath, formPath, canOpenAgain, frame, signInAfterSeconds, asksWith = 'HEAD' } = details
  const inNewTab = html` target="_blank" rel="noopener"`
  const leaves = frame === 'own' ? inNewTab : undefined
  // The page asks in the background until somebody has signed in, for example in another tab.
  const here =
    topic === 'notSignedIn' && canOpenAgain
      ? html` data-here data-while="401 503 504" data-method="${asksWith}"`
      : undefined
  const label = topic === 'notSignedIn' ? actions.signIn : actions.signInAgain
  const home = (look: string, text = actions.home, target = leaves) =>
    homePath === undefined ? [] : [html`<a class="${look}" href="${homePath}"${target}>${text}</a>`]
  const buttons = {
    signIn: [html`<a class="button" href="${signInPath}"${here}${leaves}>${label}</a>`, ...home('button second')],
    signInInNewTab: [html`<a class="button" href="${signInPath}"${inNewTab}>${actions.signInInNewTab}</a>`],
    // An empty `href` means the URL of the page itself.
    tryAgain: [html`<a class="button" href="">${actions.tryAgain}</a>`, ...home('button second')],
    // Frameworks such as Turbo do not fetch a link with a target.
    tryAgainInTab: [html`<a class="button" href="" target="_top">${actions.tryAgain}</a>`, ...home('button second')],
    back:
      formPath === undefined
        ? home('button')
        : [html`<a class="button" href="${formPath}">${actions.back}</a>`, ...home('button second')],
    home: home('button'),
    homeInNewTab: home('button', actions.homeInNewTab, inNewTab)
  }
  const late =
    signInAfterSeconds !== undefined && signInAfterSeconds > 0
      ? html` hidden data-after="${signInAfterSeconds}"`
      : undefined
  if (way !== 'tryAgain' || signInAfterSeconds === undefined) return buttons[way]
  return [...buttons[way], html`<a class="button second" href="${signInPath}"${late}>${actions.signInAgain}</a>`]
}

type Topic = Exclude<keyof Texts, 'actions' | 'details' | 'loginLoop'>

/** What was seen, in words for the documentation and as a condition, the texts that explain it, and the main button. */
type Explanation = readonly [
  seen: string,
  applies: (details: ErrorDetails) => boolean,
  topic: Topic,
  way: Way,
  /** The topic whose title the page has, if it is another one. */
  title?: Topic
]

const code = (error: string) => [`\`${error}\``, (details: ErrorDetails) => details.error === error] as const
const onStatus = (status: number) => [String(status), (details: ErrorDetails) => details.status === status] as const
const inLogin = (status: number) =>
  [`${status} (callback)`, (details: ErrorDetails) => details.inLogin && details.status === status] as const

/** The first explanation that applies counts. */
export const EXPLANATIONS: readonly Explanation[] = [
  ['any in a frame of another site', ({ frame }) => frame === 'other', 'inFrame', 'homeInNewTab'],
  ['401 to a form', ({ form, status }) => form === 'unsent' && status === 401, 'formSignedOut', 'signInInNewTab'],
  ['503 to a form', ({ form }) => form === 'unsent', 'formUnavailable', 'homeInNewTab'],
  ['ambiguous refusal', ({ mayBeOver }) => Boolean(mayBeOver), 'mayBeOver', 'signIn'],
  [...code('upstream_unauthorized'), 'apiRefused', 'signIn'],
  ['5xx to a form that may have been processed', ({ form }) => form === 'executed', 'mayBeDone', 'back'],
  ['502 to 504 with a session', ({ isSignedIn, status }) => isSignedIn && status > 500, 'stillSignedIn', 'tryAgain'],
  [
    '504 with `Retry-After`',
    ({ retryAfterSeconds: after, status }) => after !== undefined && status === 504,
    'busy',
    'signIn',
    'providerSlow'
  ],
  ['503 with `Retry-After`', ({ retryAfterSeconds }) => retryAfterSeconds !== undefined, 'busy', 'signIn'],
  [
    '403 (another site)',
    ({ refusal, canOpenAgain }) => refusal === 'otherSite' && Boolean(canOpenAgain),
    'otherSite',
    'tryAgainInTab'
  ],
  ['403 (form of another site)', ({ refusal }) => refusal === 'otherSite', 'otherSite', 'home'],
  [
    '403 (script)',
    ({ refusal, canOpenAgain }) => refusal === 'byScript' && Boolean(canOpenAgain),
    'byScript',
    'tryAgainInTab'
  ],
  ['403 (script, not GET)', ({ refusal }) => refusal === 'byScript', 'byScript', 'home'],
  ['403 (other reasons)', ({ refusal }) => refusal === 'refused', 'refused', 'home'],
  [...code('account_not_allowed'), 'accountNotAllowed', 'signIn'],
  [...code('insufficient_user_authentication'), 'strongerSignInNeeded', 'signIn'],
  [...code('consent_required'), 'consentMissing', 'signIn'],
  [...code('provider_unreachable'), 'providerUnreachable', 'signIn'],
  [...code('session_too_large'), 'sessionTooLarge', 'home'],
  [
    '`provider_refused` (callback)',
    ({ inLogin, status, error }) => inLogin && status === 400 && error === 'provider_refused',
    'notSignedInThere',
    'signIn'
  ],
  [...inLogin(400), 'loginNotCompleted', 'signIn'],
  [...inLogin(403), 'accessNotGranted', 'signIn'],
  [...onStatus(401), 'notSignedIn', 'signIn'],
  [...onStatus(403), 'refused', 'home'],
  [...onStatus(404), 'notFound', 'home'],
  [...onStatus(405), 'methodNotAllowed', 'home'],
  [...onStatus(413), 'requestTooLarge', 'home'],
  ['431 (cookies)', ({ cookies }) => Boolean(cookies?.length), 'headersTooLarge', 'tryAgain'],
  [...onStatus(431), 'requestTooLarge', 'home'],
  [...onStatus(502), 'providerError', 'signIn'],
  [...onStatus(503), 'providerUnavailable', 'signIn'],
  [...onStatus(504), 'providerSlow', 'signIn'],
  ['other 4xx', ({ status }) => status < 500, 'invalidRequest', 'home'],
  // The URL of the callback cannot be opened again, because its code is valid only once.
  ['other 5xx', ({ canOpenAgain, inLogin }) => Boolean(canOpenAgain) && !inLogin, 'serverError', 'tryAgain'],
  ['other 5xx to a form or in a login', () => true, 'serverError', 'signIn']
]

function explanationOf(details: ErrorDetails): Explanation {
  return EXPLANATIONS.find(([, applies]) => applies(details)) as Explanation
}

/** Returns a text such as "in 7 seconds". */
function delayText(seconds: number, language: string): string {
  const format = new Intl.RelativeTimeFormat(language)
  return seconds > 90 ? format.format(Math.ceil(seconds / 60), 'minute') : format.format(Math.max(1, seconds), 'second')
}

/** A reason why a browser did not send back a cookie of a login. Each reason has a text of the same name. */
export type LoginLoopReason = 'secureCookieOnHttp' | 'otherHost' | 'cookiesBlocked' | 'cookieTooLarge'

export interface LoginLoopDiagnosis {
  /** The most likely reason comes first. */
  readonly reasons: readonly LoginLoopReason[]
  /** The host on which the login began, for instance `127.0.0.1:8080`, if the page should name it. */
  readonly startedAt?: string | undefined
}

export interface LoginLoop extends LoginLoopDiagnosis {
  /** The code of the error: the cookie that is missing. */
  readonly error: string
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
