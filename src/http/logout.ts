import type { Context, Middleware } from 'koa'
import { markLoggedOut } from '../auth/logout-marks.js'
import type { Profiles } from '../auth/profiles.js'
import type { Refreshes } from '../auth/refresh.js'
import type { Config } from '../config/settings.js'
import type { Coordination } from '../coordination/coordination.js'
import type { IdentityProvider } from '../idp/client.js'
import { endSessionUrl } from '../idp/end-session-url.js'
import type { SessionRecord } from '../session/record.js'
import { within } from '../support/within.js'
import type { Background } from './background.js'
import type { CookieNames } from './cookies.js'
import { clearLoginCookie } from './login-cookie.js'
import { redirect } from './redirect.js'
import type { RequestLog } from './request.js'
import { removeSession, sessionRecord } from './session.js'

export interface LogoutParts {
  readonly config: Config
  readonly idp: IdentityProvider
  readonly refreshes: Refreshes
  readonly profiles: Pick<Profiles, 'forget'>
  readonly coordination: Coordination
  readonly background: Background
  readonly cookies: CookieNames
  readonly homePath: string
  readonly homeUrl: string
  readonly requestLog: RequestLog
}

// As long as a revocation may take. A person who logs out must not wait for a provider that does not answer.
const DISCOVERY_PATIENCE_MS = 2000

/** `GET /api/auth/logout`: ends the session here and, as configured, at the provider. Works even if the provider is down. */
export function logout(parts: LogoutParts): Middleware {
  const { config, idp, refreshes, profiles, coordination, background, cookies, homePath, homeUrl, requestLog } = parts
  const { clientId } = config.platform

  return async function logout(ctx) {
    const record = sessionRecord(ctx)
    if (record) {
      profiles.forget(record.id)
      await markLoggedOut(coordination, record.id, config.session.maxAgeSeconds * 1000)
      if (config.logout === 'revoke') void background.add(revoke(ctx, record))
    }
    removeSession(ctx)
    clearLoginCookie(ctx, cookies)
    requestLog(ctx).info({ event: 'logout', had_session: record !== undefined }, 'logout')
    redirect(ctx, config.logout === 'idp' ? await wayOut(ctx, record) : homePath)
  }

  // The redirect does not wait for this. A refresh that is under way sees the logout mark and revokes its own new token.
  async function revoke(ctx: Context, record: SessionRecord) {
    const log = requestLog(ctx)
    try {
      const { fields } = await refreshes.newest(record)
      const { revocationEndpoint } = await idp.metadata()
      if (revocationEndpoint === undefined) {
        log.info({ event: 'revocation_unavailable' }, 'refresh token not revoked: the provider has no such endpoint')
        return
      }
      if (fields.refresh_token) await idp.revokeRefreshToken(fields.refresh_token)
      log.info({ event: 'revoked' }, 'refresh token revoked')
    } catch (error) {
      log.warn({ event: 'revocation_failed', err: error }, 'refresh token not revoked')
    }
  }

  /** The provider's own logout, or the start page where the provider has none or does not answer soon. */
  async function wayOut(ctx: Context, record: SessionRecord | undefined): Promise<string> {
    const log = requestLog(ctx)
    try {
      const metadata = await within(DISCOVERY_PATIENCE_MS, idp.metadata())
      const idTokenHint = record?.identity?.idToken
      const url = endSessionUrl(metadata, { clientId, postLogoutRedirectUri: homeUrl, idTokenHint })
      if (url !== undefined) return url
      log.warn({ event: 'end_session_unavailable' }, 'logged out here only: the provider has no end-session endpoint')
    } catch (error) {
      log.warn({ event: 'end_session_unavailable', err: error }, 'logged out here only: the provider did not answer')
    }
    return homePath
  }
}
