import type { Middleware } from 'koa'
import { readCookie } from '../../cookie/request-cookies.js'
import { LOGIN_PROMPTS, type LoginPrompt } from '../../login/begin-login.js'
import { newBrowserId } from '../../login/transaction.js'
import { invalidRequest } from '../errors/http-error.js'
import { otherLoopbackName, sessionCookieMissing } from '../errors/login-error.js'
import type { Services } from '../middleware-services.js'
import { notesOf, requestLog } from '../request/request.js'
import { createAcceptedReturn, isRestarted, readReturningQuery, redirect } from '../request/returning.js'
import { readLoginCookie, writeLoginCookie } from '../request/session.js'

/** `GET /api/auth/login` redirects to the identity provider. It does not change the session. */
export function login(services: Services): Middleware {
  const { beginLogin, site, metrics, log } = services
  const { cookies } = site
  const acceptedReturn = createAcceptedReturn(services)
  const { host: callbackHost } = new URL(site.homeUrl)

  return async function login(ctx) {
    const { returnTo: wanted, parameters } = readReturningQuery(ctx, services)
    const returnTo = acceptedReturn(ctx, wanted)
    notesOf(ctx).login = { returnTo }
    const prompt = promptOf(parameters)
    notesOf(ctx).login = { returnTo, prompt }
    const { browserId = newBrowserId(), succeededAt } = readLoginCookie(ctx, cookies) ?? {}
    writeLoginCookie(ctx, cookies, { browserId, succeededAt: undefined })
    const hasSessionCookie = readCookie(ctx.get('Cookie'), cookies.session) !== undefined
    const location = await beginLogin({
      browserId,
      returnTo,
      succeededAt,
      hasSessionCookie,
      prompt,
      isRestart: isRestarted(parameters)
    })
    if (location === undefined) {
      requestLog(ctx, log).warn(
        { event: 'session_cookie_missing' },
        'the browser did not send back the session cookie of its last login'
      )
      throw sessionCookieMissing(ctx.host !== callbackHost, otherLoopbackName(ctx, callbackHost))
    }
    metrics.count('logins_started_total')
    const ignored_parameters = [...parameters.keys()].filter(name => UNKNOWN_PARAMETER.test(name))
    requestLog(ctx, log).debug({ event: 'login_started', ignored_parameters }, 'login started')
    redirect(ctx, location)
  }
}

// Anything else is not the name of a parameter, but perhaps a value without a name, such as an e-mail address.
const UNKNOWN_PARAMETER = /^(?!(?:return_to|prompt|restarted)$)\w{1,40}$/

/** @throws HttpError 400 if the parameter is not one of the prompts that a page may request */
function promptOf(parameters: URLSearchParams): LoginPrompt | undefined {
  const values = parameters.getAll('prompt')
  if (values.length === 0) return undefined
  const prompt = LOGIN_PROMPTS.find(known => values.length === 1 && known === values[0])
  if (!prompt) throw invalidRequest(`The parameter prompt must be one of: ${LOGIN_PROMPTS.join(', ')}.`)
  return prompt
}
