/**
 * Which token responses are checked against the access list, and what may be stored before the check has ended. The functions are
 * pure: the simulation and the property tests run them as well.
 *
 * The check may need the user info, and reading it takes time. Meanwhile, other processes read what is stored, and this process
 * may die. So the record that is stored before the check has the new refresh token, which must not get lost, but none of the new
 * access tokens.
 */

import type { SessionRecord } from '../cookie/session-record.js'
import type { Judgement } from './access.js'

interface TokenResponse {
  /** The session whose refresh token was sent. Undefined for a login. */
  readonly session?: Pick<SessionRecord, 'isUnchecked'>
  /** What the ID token of the response says. */
  readonly judgement: Judgement
  /** True for the response to the second request of dual mode. */
  readonly isSecond: boolean
}

/** True if the tokens of this response must not be used before the access list was checked. */
export function needsCheck({ session, judgement, isSecond }: TokenResponse): boolean {
  if (judgement === 'allowed') return false
  // The process that began an earlier check may have died, or its result was not stored.
  if (session?.isUnchecked) return true
  // The second request asks for fewer scopes, so its ID token may lack claims. The first response was checked with them.
  return !isSecond || judgement === 'denied'
}

/** Returns the record that is stored before the check: `session` with the refresh token of its next revision. */
export function uncheckedRecord(session: SessionRecord, next: SessionRecord): SessionRecord {
  const { rev, listedAt, fields } = next
  return {
    ...session,
    rev,
    fields: { ...session.fields, refresh_token: fields.refresh_token },
    ...(listedAt !== undefined && { listedAt }),
    isUnchecked: true
  }
}
