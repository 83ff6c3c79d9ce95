import { html } from './html.js'
import { renderPage } from './page.js'

export interface ErrorDetails {
  readonly status: number
  /** The code of the JSON body, such as `access_denied`. */
  readonly error: string
  readonly description: string
  /** The id of the request in the log, or undefined if the request is not logged. */
  readonly requestId: string | undefined
  /** True for the callback of a login, where a status has another meaning than on other routes. */
  readonly inLogin: boolean
  /** True if the server could not connect to the identity provider. A slow provider can cause the same status. */
  readonly isUnreachable: boolean
  /** The address that "Sign in again" opens, for instance `/api/auth/login?return_to=%2Fmodels`. */
  readonly signInPath: string
  /** Undefined if there is no start page. */
  readonly homePath: string | undefined
  /** If set, the response makes the browser retry automatically after this many seconds. */
  readonly retryAfterSeconds?: number | undefined
}

/** Renders an error page. The page explains what happened and what to do next. It also shows details for support. */
export function errorPage(details: ErrorDetails): string {
  const { status, error, description, requestId, signInPath, homePath } = details
  const { title, happened, next, action } = explain(details)
  const signIn = html`<a class="button" href="${signInPath}">Sign in again</a>`
  const home = (look: string) =>
    homePath === undefined ? undefined : html`<a class="${look}" href="${homePath}">Go to the start page</a>`
  return renderPage({
    title,
    body: html`<p>${happened}</p>
<p>${next}</p>
<p class="actions">${action === 'sign-in' ? [signIn, home('button second')] : home('button')}</p>
<div class="small">
<p>If you ask for help, quote this:</p>
<p>Error <code>${status} ${error}</code>: ${description}</p>
${requestId === undefined ? undefined : html`<p>Request <code>${requestId}</code></p>`}
</div>`
  })
}

interface Explanation {
  readonly title: string
  readonly happened: string
  readonly next: string
  readonly action: 'sign-in' | 'home'
}

// The first matching explanation is used. More specific explanations come first.
function explain({ status, error, inLogin, isUnreachable, retryAfterSeconds }: ErrorDetails): Explanation {
  if (retryAfterSeconds !== undefined) return busy(status, retryAfterSeconds)
  const ofRoute = inLogin ? byStatusInLogin : byStatus
  if (isUnreachable) return unreachable
  return byError[error] ?? ofRoute[status] ?? byStatus[status] ?? (status < 500 ? anyRequest : anyFault)
}

function busy(status: number, retryAfterSeconds: number): Explanation {
  return {
    title: status === 504 ? 'The sign-in service is taking too long' : 'The service is busy',
    happened: 'The sign-in service cannot answer at the moment. If you were signed in, you still are.',
    next: `This page tries again by itself in ${duration(retryAfterSeconds)}. You do not have to do anything.`,
    action: 'sign-in'
  }
}

function duration(seconds: number): string {
  if (seconds > 90) return `${Math.ceil(seconds / 60)} minutes`
  return seconds <= 1 ? 'a second' : `${seconds} seconds`
}

const anyRequest: Explanation = {
  title: 'That did not work',
  happened: 'The server could not understand this request.',
  next: 'Check the address for a typing mistake, or start again from the start page.',
  action: 'home'
}

const anyFault: Explanation = {
  title: 'Something went wrong on our side',
  happened: 'The server had an unexpected error. You did not cause it.',
  next: 'Try again. If it keeps happening, tell the people who run this application.',
  action: 'sign-in'
}

const unreachable: Explanation = {
  title: 'The sign-in service cannot be reached',
  happened:
    'This server could not connect to the service that manages your account. If you were signed in, you still are.',
  next: 'Wait a moment, then sign in again. If it keeps happening, tell the people who run this application.',
  action: 'sign-in'
}

const byError: Readonly<Record<string, Explanation | undefined>> = {
  account_not_allowed: {
    title: 'Your account is not allowed to sign in here',
    happened:
      'Signing in worked, but this application admits only the accounts on its list. Your account is not on the list, or its e-mail address has not been verified.',
    next: 'If you have another account, sign in with that one. Otherwise ask the people who run this application for access.',
    action: 'sign-in'
  },
  session_too_large: {
    title: 'Your session does not fit into the browser',
    happened:
      'Signing in worked, but the data of your account does not fit into cookies, so this browser cannot keep your session.',
    next: 'Trying again will not help. Tell the people who run this application that it must request less access.',
    action: 'home'
  }
}

const byStatusInLogin: Readonly<Record<number, Explanation | undefined>> = {
  400: {
    title: 'This sign-in could not be completed',
    happened:
      'The link that leads back from the sign-in page is too old, was used before, or belongs to another browser or a private window.',
    next: 'Sign in again. If you come back here every time, allow cookies for this site and close its older tabs.',
    action: 'sign-in'
  },
  403: {
    title: 'Access was not granted',
    happened: 'The sign-in page reported that access was refused, or that signing in was cancelled.',
    next: 'If you did not intend this, sign in again and allow access. If you were not asked for permission, your account may have no access to this application. Then ask the people who run this application.',
    action: 'sign-in'
  }
}

const byStatus: Readonly<Record<number, Explanation | undefined>> = {
  401: {
    title: 'You are not signed in',
    happened: 'This page is for people who are signed in. You have no session, or it has ended.',
    next: 'Sign in to continue.',
    action: 'sign-in'
  },
  403: {
    title: 'This request came from another site',
    happened: 'Another website tried to use your session here. The request was refused and nothing was changed.',
    next: 'If you wanted to do this, open the application itself and try again there.',
    action: 'home'
  },
  404: {
    title: 'There is no page here',
    happened: 'Nothing was found at this address.',
    next: 'Check the address for a typing mistake, or go to the start page.',
    action: 'home'
  },
  405: {
    title: 'This address cannot be used that way',
    happened: 'A form or a program sent data to this address, which does not accept data.',
    next: 'Start again from the start page.',
    action: 'home'
  },
  413: {
    title: 'The request is too large',
    happened: 'The request was larger than this server accepts.',
    next: 'Start again from the start page. If this error appears again, clear the cookies of this site.',
    action: 'home'
  },
  502: {
    title: 'The sign-in service has a problem',
    happened: 'The service that manages your account answered with an error, or with data that this server cannot use.',
    next: 'Sign in again. If it fails again, tell the people who run this application.',
    action: 'sign-in'
  },
  503: {
    title: 'Please try again in a moment',
    happened: 'The sign-in service is not available at the moment. If you were signed in, you still are.',
    next: 'Wait a few seconds, then try again.',
    action: 'sign-in'
  },
  504: {
    title: 'The sign-in service is taking too long',
    happened: 'The service that manages your account did not answer in time. If you were signed in, you still are.',
    next: 'Wait a moment, then sign in again.',
    action: 'sign-in'
  }
}
