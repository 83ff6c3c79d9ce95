import type { Middleware } from 'koa'
import type { IdentityProvider } from '../idp/client.js'
import { OAuthError, UpstreamError } from '../idp/errors.js'
import type { Mode } from '../modes/mode.js'
import { HttpError, providerFailure } from './errors.js'
import { tokensOf } from './require-tokens.js'

/** `GET /api/auth/profile`: `{ name }` of whoever is logged in, asked with the internal token (contract section 4). */
export function profile({ idp, mode }: { readonly idp: IdentityProvider; readonly mode: Mode }): Middleware {
  return async function profile(ctx) {
    const userInfo = await idp.userInfo(tokensOf(ctx).internal.access_token).catch((error: unknown) => {
      throw profileFailure(error)
    })
    ctx.body = { name: mode.displayName(userInfo) }
  }
}

// The session stays whatever the provider says here: a profile it does not give is no reason to log anyone out.
function profileFailure(error: unknown): unknown {
  if (error instanceof OAuthError) return providerFailure(error)
  if (!(error instanceof UpstreamError)) return error
  if (error.problem === 'timeout' || error.isBusy) return providerFailure(error)
  return new HttpError(502, 'server_error', 'The identity provider did not give the profile.')
}
