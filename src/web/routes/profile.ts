import type { Middleware } from 'koa'
import type { SessionRecord } from '../../cookie/session-record.js'
import { ProviderError } from '../../provider/provider-error.js'
import { providerFailure } from '../errors/login-error.js'
import type { Services } from '../middleware-services.js'
import { sessionRecord } from '../request/session.js'
import { tokensOf } from './require-tokens.js'

/**
 * `GET /api/auth/profile` returns `{ name }`, the display name of the user who is signed in. The user info request uses
 * the internal token, which is the access token for use on servers.
 */
export function profile({ profiles }: Services): Middleware {
  return async function profile(ctx) {
    // This route runs after `requireTokens`, so there is always a session.
    const record = sessionRecord(ctx) as SessionRecord
    const name = await profiles.displayName(record, tokensOf(ctx).internal.access_token).catch((error: unknown) => {
      // The error belongs to one session, so the log has it as a warning. It never ends the session.
      throw error instanceof ProviderError ? providerFailure(error, 502) : error
    })
    ctx.body = { name }
  }
}
