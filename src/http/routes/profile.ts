import type { Middleware } from 'koa'
import { OAuthError, ProviderError } from '../../provider/errors.js'
import type { Services } from '../../services.js'
import type { SessionRecord } from '../../session/record.js'
import { HttpError } from '../errors/http-error.js'
import { providerFailure } from '../errors/login-error.js'
import { tokensOf } from './require-tokens.js'
import { sessionRecord } from './session.js'

/**
 * `GET /api/auth/profile` returns `{ name }`, the display name of the user who is signed in. The user info request
 * uses the internal token, which is the access token for use on servers.
 */
export function profile({ profiles }: Services): Middleware {
  return async function profile(ctx) {
    // This route runs after `requireTokens`, so there is always a session.
    const record = sessionRecord(ctx) as SessionRecord
    const name = await profiles.displayName(record, tokensOf(ctx).internal.access_token).catch((error: unknown) => {
      throw profileFailure(error)
    })
    ctx.body = { name }
  }
}

// A failed profile request never ends the session.
function profileFailure(error: unknown): unknown {
  if (error instanceof OAuthError) return providerFailure(error)
  if (!(error instanceof ProviderError)) return error
  if (error.problem === 'timeout' || error.isBusy) return providerFailure(error)
  const description = 'The identity provider did not give the profile.'
  return new HttpError({ status: 502, error: 'server_error', description, cause: error })
}
