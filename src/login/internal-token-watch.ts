/**
 * Finds out once for each process whether dual mode works with the identity provider. Some providers (Doorkeeper, by default) end
 * an access token when a refresh issues the next one, so the internal token is invalid as soon as there is a public token.
 */
import type { Logger } from 'pino'
import { type Clock, withinOrUndefined } from '../base/clock.js'
import type { IdentityProvider } from '../provider/client.js'
import { isRefusedByUserInfo } from '../provider/provider-error.js'

interface WatchDependencies {
  readonly idp: Pick<IdentityProvider, 'metadata' | 'userInfo'>
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
}

/** The longest time by which the first test delays a login, in milliseconds. */
const MAX_DELAY_MS = 2000

export function createInternalTokenWatch({ idp, clock, log }: WatchDependencies) {
  let isDone = false

  /** Returns true or false if the user info endpoint accepts or refuses the token, undefined if it cannot be asked now. */
  async function isAccepted(accessToken: string): Promise<boolean | undefined> {
    const asked = idp.userInfo(accessToken, undefined).then(
      () => true,
      error => (isRefusedByUserInfo(error) ? false : undefined)
    )
    return withinOrUndefined(MAX_DELAY_MS, asked, clock)
  }

  async function compare(accessToken: string): Promise<void> {
    const after = await isAccepted(accessToken)
    isDone = after !== undefined
    if (after !== false) return
    const message =
      'the identity provider ends the internal token when it issues the public token, so dual mode does not work; configure the provider to keep earlier access tokens, or use --mode single'
    log.warn({ event: 'internal_token_ended' }, message)
  }

  /**
   * Sends the second token request of a login. The first time, tests the internal token before and after the request.
   * @param internalToken undefined if the login requested no `openid`, without which a user info endpoint accepts no token
   */
  return async function watchInternalToken<Response>(
    internalToken: string | undefined,
    sendSecondRequest: () => Promise<Response>
  ): Promise<Response> {
    if (isDone || internalToken === undefined) return sendSecondRequest()
    // A login with configured endpoints must not depend on discovery.
    const metadata = await idp.metadata().catch(() => undefined)
    if (metadata?.userinfoEndpoint === undefined || metadata.quirks.dualModeProblem === null) return sendSecondRequest()
    // Other logins that are in progress need not test as well.
    isDone = true
    const before = await isAccepted(internalToken)
    if (before === undefined) isDone = false
    if (!before) return sendSecondRequest()
    try {
      const response = await sendSecondRequest()
      void compare(internalToken)
      return response
    } catch (error) {
      isDone = false
      throw error
    }
  }
}
