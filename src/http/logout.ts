import type { Context, Middleware } from 'koa'
import type { Config } from '../config/settings.js'
import type { Coordination } from '../coordination/coordination.js'
import { within } from '../coordination/within.js'
import type { IdentityProvider } from '../idp/client.js'
import { endSession } from '../modes/logouts.js'
import type { Profiles } from '../modes/profiles.js'
import type { Renewals } from '../modes/renewal.js'
import type { SessionRecord } from '../session/record.js'
import type { Background } from './background.js'
import type { CookieNames } from './cookies.js'
import { clearLoginCookie } from './login-cookie.js'
import { redirect } from './redirect.js'
import type { RequestLog } from './request.js'
import { removeSession, sessionRecord } from './session.js'

export interface LogoutParts {
  readonly config: Config
  readonly idp: IdentityProvider
  readonly renewals: Renewals
  readonly profiles: Pick<Profiles, 'forget'>
  readonly coordination: Coordination
  readonly background: Background
  readonly cookies: CookieNames
  readonly homePath: string
  readonly homeUrl: string
  readonly requestLog: RequestLog
}

// As long as a revocation may take. Whoever logs out at a silent provider should see soon that they are logged out here.
const DISCOVERY_PATIENCE_MS = 2000

/** `GET /api/auth/logout`: ends the session here, and as configured at the provider. Works whatever the provider does. */
export function logout(parts: LogoutParts): Middleware {
  const { config, idp, renewals, profiles, coordination, background, cookies, homePath, homeUrl, requestLog } = parts
  const { clientId } = config.platform

  return async function logout(ctx) {
    const record = sessionRecord(ctx)
    if (record) {
      profiles.forget(record.id)
      await endSession(coordination, record.id, config.session.maxAgeSeconds * 1000)
      if (config.logout === 'revoke') void background.add(revoke(ctx, record))
    }
    await removeSession(ctx)
    clearLoginCookie(ctx, cookies)
    requestLog(ctx).info({ event: 'logout', had_session: record !== undefined }, 'logout')
    redirect(ctx, config.logout === 'idp' ? await endSessionUrl(ctx) : homePath)
  }

  // The redirect does not wait for this; a renewal under way comes first, since it is its token that must go.
  async function revoke(ctx: Context, record: SessionRecord) {
    const log = requestLog(ctx)
    try {
      const { fields } = await renewals.newest(record)
      if (fields.refresh_token) await idp.revokeRefreshToken(fields.refresh_token)
      log.info({ event: 'revoked' }, 'refresh token revoked')
    } catch (error) {
      log.warn({ event: 'revocation_failed', err: error }, 'refresh token not revoked')
    }
  }

  /** OpenID Connect RP-Initiated Logout section 2; the start page where the provider offers none or does not answer soon. */
  async function endSessionUrl(ctx: Context): Promise<string> {
    try {
      const { endSessionEndpoint, isDiscovered } = await within(DISCOVERY_PATIENCE_MS, idp.metadata())
      if (!endSessionEndpoint) return homePath
      const url = new URL(endSessionEndpoint)
      url.searchParams.set('post_logout_redirect_uri', homeUrl)
      if (isDiscovered) url.searchParams.set('client_id', clientId)
      return url.href
    } catch (error) {
      requestLog(ctx).warn({ event: 'end_session_unavailable', err: error }, 'logged out here only')
      return homePath
    }
  }
}
