import type { Middleware } from 'koa'
import type { Profiles } from '../auth/profiles.js'
import { OAuthError, UpstreamError } from '../idp/errors.js'
import type { SessionRecord } from '../session/record.js'
import { HttpError, providerFailure } from './errors.js'
import { tokensOf } from './require-tokens.js'
import { sessionRecord } from './session.js'

/** `GET /api/auth/profile`: `{ name }` of whoever is logged in, asked for with the internal token (contract section 4). */
export function profile({ profiles }: { readonly profiles: Pick<Profiles, 'displayName'> }): Middleware {
  return async function profile(ctx) {
    // Behind requireTokens there is always a session.
    const record = sessionRecord(ctx) as SessionRecord
    const name = await profiles.displayName(record, tokensOf(ctx).internal.access_token).catch((error: unknown) => {
      throw profileFailure(error)
    })
    ctx.body = { name }
  }
}

// The session stays whatever the provider answers. A missing profile is no reason to log anyone out.
function profileFailure(error: unknown): unknown {
  if (error instanceof OAuthError) return providerFailure(error)
  if (!(error instanceof UpstreamError)) return error
  if (error.problem === 'timeout' || error.isBusy) return providerFailure(error)
  const failure = new HttpError(502, 'server_error', 'The identity provider did not give the profile.')
  // For the log line of this request. The response never shows it.
  failure.cause = error
  return failure
}
