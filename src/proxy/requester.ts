import type { Context } from 'koa'
import { sessionRecord } from '../http/routes/session.js'
import type { Requester } from './fair-line.js'

/**
 * Returns the session and the person that the limits of the proxy count. A person is known by issuer and subject (OpenID
 * Connect Core section 2). Without the scope `openid` the person is not known, so each session counts as a person. Call
 * it only after the middleware `session` has run.
 */
export function requesterOf(ctx: Context): Requester {
  const record = sessionRecord(ctx)
  const session = `session ${record?.id ?? ''}`
  const identity = record?.identity
  return { session, person: identity ? `person ${JSON.stringify([identity.iss, identity.sub])}` : session }
}
