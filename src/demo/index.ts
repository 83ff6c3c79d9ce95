/**
 * The demo identity provider. With `--demo`, it replaces Autodesk Platform Services (the platform), so that developers
 * can try the server without an account. The tests of the whole server use the demo, too. The demo is based on
 * oidc-provider, and has the paths, scopes, token format and single-use refresh tokens of the platform. It keeps all
 * data in memory. It accepts only connections from this machine, and only requests whose `Host` is this machine or the
 * host of the callback URL.
 *
 * This folder is loaded only for a demo, so it does not slow down a start without the demo.
 *
 * - `open`: the only file that other folders import; it starts a demo and changes the settings
 * - `platform`: what the demo imitates; `provider`: oidc-provider with these properties
 * - `pages`, `users`: the sign-in and sign-out, and who has signed in; `apis`: user info, and APIs for the API proxy
 */
import { type JsonWebKey, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type Koa from 'koa'
import type { KoaContextWithOIDC } from 'oidc-provider'
import { closeServer, listen } from '../base/listener.js'
import { homeUrlOf, isLocalRequest } from '../config/types/urls.js'
import { createAccessTokenReader, demoRules, hubs, userInfo } from './apis.js'
import { createDemoPages, endRevokedSession, redirectIfSignedOut, signIn } from './pages.js'
import { createSigningKey, paths } from './platform.js'
import { createProvider } from './provider.js'
import { createUsers } from './users.js'

export { createSigningKey } from './platform.js'
export { offeredUsers } from './users.js'

/** The numbers of requests to the demo identity provider, including rejected ones. */
type DemoCalls = Record<'refreshToken' | 'reusedRefreshToken' | 'revocation', number>

export interface DemoOptions {
  /** The callback URL of the application. No other callback URL is registered. */
  callbackUrl: string
  /** The port on 127.0.0.1. By default, or with 0, the system chooses a free port. */
  port?: number | undefined
  /**
   * The URL to which the demo sends logout tokens (OpenID Connect Back-Channel Logout). By default, the demo sends no
   * logout tokens.
   */
  backchannelLogoutUrl?: string | undefined
  /** The lifetime of access tokens in seconds. The default is 3599, as on the platform. */
  tokenLifetimeSeconds?: number | undefined
  /**
   * The clock, in milliseconds since the epoch. Tests may move it ahead of the system clock. It must not be behind the
   * system clock, because oidc-provider checks some expiry times with the system clock.
   */
  now?: () => number
  /** The result of `createSigningKey`. By default, each demo creates a key, which takes a tenth of a second. */
  signingKey?: JsonWebKey | undefined
  /** Receives the internal errors of the demo. Rejected requests are not logged. */
  log?: { error(details: { err: unknown }, message: string): void }
}

export type Demo = Awaited<ReturnType<typeof startDemo>>

/**
 * Starts the demo identity provider. If its port cannot be used, rejects with Node's error, which then has the property
 * `listener: 'demo'`.
 */
export async function startDemo(options: DemoOptions) {
  const { callbackUrl, backchannelLogoutUrl, tokenLifetimeSeconds = 3599, now = Date.now, log } = options
  const postLogoutUrl = homeUrlOf(callbackUrl)
  // The id and the secret are about as long as on the platform. Form-encoding does not change their characters, so
  // clients may form-encode the credentials or send them unchanged.
  const clientId = `demo-${randomBytes(33).toString('base64url').slice(0, 43)}`
  const clientSecret = randomBytes(48).toString('base64url')
  const signingKey = options.signingKey ?? (await createSigningKey())

  const server = createServer({ keepAliveTimeout: 75_000 })
  const port = await listen(server, { port: options.port ?? 0, host: '127.0.0.1', listener: 'demo' })
  const issuer = `http://127.0.0.1:${port}`

  const calls: DemoCalls = { refreshToken: 0, reusedRefreshToken: 0, revocation: 0 }
  const users = createUsers()
  const pages = createDemoPages({ callbackUrl, homeUrl: postLogoutUrl })
  const provider = createProvider({
    issuer,
    client: {
      client_id: clientId,
      client_secret: clientSecret,
      redirect_uris: [callbackUrl],
      post_logout_redirect_uris: [postLogoutUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      ...(backchannelLogoutUrl !== undefined && {
        backchannel_logout_uri: backchannelLogoutUrl,
        backchannel_logout_session_required: true
      })
    },
    signingKey,
    tokenLifetimeSeconds,
    users,
    pages,
    now
  })
  provider.use(localOnly(callbackUrl))
  provider.use(countCalls(calls))
  const readAccessToken = createAccessTokenReader(signingKey, now)
  provider.use(userInfo(readAccessToken, users))
  provider.use(hubs(readAccessToken))
  provider.use(signIn(provider, users, pages))
  provider.use(redirectIfSignedOut)
  provider.use(endRevokedSession(provider))
  const report = (err: unknown) => log?.error({ err }, 'the demo identity provider failed')
  provider.on('server_error', (_ctx, err) => report(err))
  const app: Koa = provider
  app.on('error', (err, ctx?: Koa.Context) => {
    // Koa also reports errors that only set a status, and requests that the client aborted. Neither is an internal
    // error.
    const isInternalError = err?.expose !== true && ctx?.req.complete !== false && ctx?.writable !== false
    if (isInternalError) report(err)
  })
  server.on('request', app.callback())

  return {
    /** The value for `platform.issuer`. The discovery document contains all other URLs. */
    issuer,
    clientId,
    clientSecret,
    /** Proxy rules that forward requests to the APIs of the demo (see `apis.ts`). */
    proxyRules: demoRules(issuer),
    /** The only URL to which the end-session endpoint redirects. */
    postLogoutUrl,
    port,
    calls: calls as Readonly<DemoCalls>,
    /** Stops immediately and closes all open connections. */
    close: () => closeServer(server)
  }
}

/** Creates a middleware that responds with 403 to requests from other machines. */
function localOnly(callbackUrl: string): Koa.Middleware {
  return function localOnly(ctx, next) {
    if (!isLocalRequest(ctx.req, callbackUrl)) ctx.throw(403, 'The demo accepts requests from this machine only.')
    return next()
  }
}

/** Creates a middleware that counts requests. Only when oidc-provider has parsed the body, the grant type is known. */
function countCalls(calls: DemoCalls): Koa.Middleware {
  return async function countCalls(ctx, next) {
    await next()
    if (ctx.path === paths.revocation) calls.revocation++
    const { oidc } = ctx as Partial<KoaContextWithOIDC>
    if (ctx.path !== paths.token || oidc?.body?.grant_type !== 'refresh_token') return
    calls.refreshToken++
    if (oidc.entities.RefreshToken?.consumed) calls.reusedRefreshToken++
  }
}
