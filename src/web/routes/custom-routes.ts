/** The middleware with which custom routes use the session. */
import type { Context, Middleware } from 'koa'
import { HttpError } from '../errors/http-error.js'
import { loadedInBackground } from '../every-request/loaded-in-background.js'
import type { Services } from '../middleware-services.js'
import { sessionRecord } from '../request/session.js'
import { protectWithSession, type TokensState } from './require-tokens.js'

// The gate is a property of the context, and not of the application, because koa-mount runs the middleware of one application
// with the context of another.
const GATE = Symbol('gate')
type WithGate = Context & { [GATE]?: Middleware }

/** Creates the middleware that lets the custom routes after it use `requireTokens`. */
export function customRoutes(services: Services): Middleware {
  const protect = protectWithSession(services)
  // Not when the first route is used: if no file could be opened then, Node would remember the failure until the process ends.
  const provideSession = loadedInBackground(async () =>
    (await import('./custom-route-session.js')).customRouteSession(services)
  )
  const gate: Middleware = (ctx, next) =>
    protect(ctx, () => {
      provideSignal(ctx, services)
      return provideSession(ctx, next)
    })

  return function customRoutes(ctx: WithGate, next) {
    ctx[GATE] = gate
    return next()
  }
}

/** Adds `ctx.state.sessionSignal`, which costs nothing until a handler reads it. */
function provideSignal(ctx: Context, { sessions }: Services): void {
  let signal: AbortSignal | undefined

  function createSignal(): AbortSignal {
    const controller = new AbortController()
    const record = sessionRecord(ctx)
    if (record && !ctx.res.closed) {
      // If a handler passes the signal to an HTTP client, the client throws this error, which becomes the response.
      const error = new HttpError('unauthorized', { description: 'The session is over.' })
      ctx.res.once(
        'close',
        sessions.whenOver(record, () => controller.abort(error))
      )
    }
    return controller.signal
  }

  Object.defineProperty(ctx.state, 'sessionSignal', {
    configurable: true,
    enumerable: true,
    get() {
      signal ??= createSignal()
      return signal
    }
  })
}

/**
 * Middleware for custom routes that need tokens. It refreshes the session if necessary and sets `ctx.state.tokens` to
 * `{ internal, public }`. Both values have the form `{ access_token, expires_in }`, where `expires_in` is the remaining
 * lifetime in seconds. If nobody is logged in, it responds with 401 and an empty body, and the handler does not run. If
 * the session cannot be refreshed now, it responds with 503. If a page of another origin caused the request, it
 * responds with 403. Links from other sites are accepted. `ctx.state.sessionSignal` is an AbortSignal for work that must end with
 * the session: it aborts after a logout, and at the end of `session.maxLifetime`.
 *
 * TypeScript knows the type of `ctx.state` in the handlers that follow in the same `router.get()`, or in the
 * same chain of `app.use()`.
 */
export const requireTokens: Middleware<TokensState> = async function requireTokens(ctx, next) {
  const { [GATE]: gate } = ctx as WithGate
  if (!gate) {
    throw new TypeError(
      'requireTokens works only in the application of startServer or createApp. Add your middleware, or another Koa application with koa-mount, to that application.'
    )
  }
  await gate(ctx, next)
}
