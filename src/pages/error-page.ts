import { html } from './html.js'
import { renderPage } from './page.js'

export interface ErrorDetails {
  readonly status: number
  /** The code of the JSON body, such as `access_denied`. */
  readonly error: string
  readonly description: string
  /** Undefined if no log line has this id. */
  readonly requestId: string | undefined
  /** True at the callback, where the same status has another meaning. */
  readonly inLogin: boolean
  /** True if the identity provider accepted no connection; a provider that is slow has the same status. */
  readonly isUnreachable: boolean
  /** The address that "Sign in again" opens, for instance `/api/auth/login?return_to=%2Fmodels`. */
  readonly signInPath: string
  /** Undefined if there is no start page. */
  readonly homePath: string | undefined
  /** When given, the response makes the browser try again by itself after so many seconds. */
  readonly retryAfterSeconds?: number | undefined
}

/** The page that a person sees instead of the JSON error: what happened, what to do next, and what to quote to support. */
export function errorPage(details: ErrorDetails): string {
  const { status, error, description, requestId, signInPath, homePath } = details
  const { title, happened, next, way } = explain(details)
  const signIn = html`<a class="button" href="${signInPath}">Sign in again</a>`
  const home = (look: string) =>
    homePath === undefined ? undefined : html`<a class="${look}" href="${homePath}">Go to the start page</a>`
  return renderPage({
    title,
    body: html`<p>${happened}</p>
<p>${next}</p>
<p class="actions">${way === 'sign-in' ? [signIn, home('button second')] : home('button')}</p>
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
  readonly way: 'sign-in' | 'home'
}

// The most specific explanation comes first: a retry, no connection, the error, the status in this place, the status, its class.
function explain({ status, error, inLogin, isUnreachable, retryAfterSeconds }: ErrorDetails): Explanation {
  if (retryAfterSeconds !== undefined) return busy(status, retryAfterSeconds)
  const inPlace = inLogin ? byStatusInLogin : byStatus
  if (isUnreachable) return unreachable
  return byError[error] ?? inPlace[status] ?? byStatus[status] ?? (status < 500 ? anyRequest : anyFault)
}

function busy(status: number, retryAfterSeconds: number): Explanation {
  return {
    title: status === 504 ? 'The sign-in service is taking too long' : 'The service is busy',
    happened: 'The sign-in service cannot answer just now. If you were signed in, you still are.',
    next: `This page tries again by itself in ${duration(retryAfterSeconds)}. You do not have to do anything.`,
    way: 'sign-in'
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
  way: 'home'
}

const anyFault: Explanation = {
  title: 'Something went wrong on our side',
  happened: 'The server had an error that it did not expect. Nothing you did caused it.',
  next: 'Try again. If it keeps happening, tell the people who run this application.',
  way: 'sign-in'
}

const unreachable: Explanation = {
  title: 'The sign-in service cannot be reached',
  happened:
    'This server got no connection to the service that knows your account. If you were signed in, you still are.',
  next: 'Wait a moment, then sign in again. If it keeps happening, tell the people who run this application.',
  way: 'sign-in'
}

const byError: Readonly<Record<string, Explanation | undefined>> = {
  account_not_allowed: {
    title: 'Your account may not sign in here',
    happened:
      'Signing in worked, but this application is only for people on its list, and your account is not on it, or its e-mail address has not been verified.',
    next: 'If you have another account, sign in with that one. Otherwise ask the people who run this application for access.',
    way: 'sign-in'
  },
  session_too_large: {
    title: 'Your session does not fit into the browser',
    happened:
      'Signing in worked, but your account brings more data than cookies can hold, so this browser cannot keep your session.',
    next: 'Trying again will not help. Please tell the people who run this application that it has to ask for less access.',
    way: 'home'
  }
}

const byStatusInLogin: Readonly<Record<number, Explanation | undefined>> = {
  400: {
    title: 'This sign-in could not be completed',
    happened:
      'The link that leads back from the sign-in page is too old, was used before, or belongs to another browser or a private window.',
    next: 'Sign in again. If you come back here every time, allow cookies for this site and close its older tabs.',
    way: 'sign-in'
  },
  403: {
    title: 'Access was not granted',
    happened: 'The sign-in page reported that access was refused, or that signing in was cancelled.',
    next: 'If that was a mistake, sign in again and allow access. If nobody asked you, your account may not have access to this application. The people who run it can tell you.',
    way: 'sign-in'
  }
}

const byStatus: Readonly<Record<number, Explanation | undefined>> = {
  401: {
    title: 'You are not signed in',
    happened: 'This page is for people who are signed in. You have no session, or it has ended.',
    next: 'Sign in to continue.',
    way: 'sign-in'
  },
  403: {
    title: 'This request came from another site',
    happened: 'Another website tried to use your session here. The request was refused and nothing was changed.',
    next: 'If you wanted this, open the application itself and do it there.',
    way: 'home'
  },
  404: {
    title: 'There is no page here',
    happened: 'Nothing was found at this address.',
    next: 'Check it for a typing mistake, or start at the start page.',
    way: 'home'
  },
  405: {
    title: 'This address cannot be used that way',
    happened: 'This page cannot receive forms or uploads, but a form or a program sent something here.',
    next: 'Start again from the start page.',
    way: 'home'
  },
  413: {
    title: 'Too much was sent',
    happened: 'The request was larger than this server accepts.',
    next: 'Start again from the start page. If that leads here too, clear the cookies of this site.',
    way: 'home'
  },
  502: {
    title: 'The sign-in service gave no usable answer',
    happened:
      'The service that knows your account answered with an error, or with something that this server could not use.',
    next: 'Sign in again. If it fails again, tell the people who run this application.',
    way: 'sign-in'
  },
  503: {
    title: 'Please try again in a moment',
    happened: 'The sign-in service is not available at the moment. If you were signed in, you still are.',
    next: 'Wait a few seconds, then try again.',
    way: 'sign-in'
  },
  504: {
    title: 'The sign-in service is taking too long',
    happened: 'The service that knows your account did not answer in time. If you were signed in, you still are.',
    next: 'Wait a moment, then sign in again.',
    way: 'sign-in'
  }
}
