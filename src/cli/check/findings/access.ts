import type { Config } from '../../../config/settings.js'
import { type Finding, findingsFor } from '../finding.js'

const { warning } = findingsFor('access')

/** Only a login shows what the user info holds, so this warns about what the access list needs. */
export function access({ access: { allow } }: Config): Finding[] {
  if (!allow) return []
  return [
    warning(
      'access.allow lets in only accounts whose user info has an e-mail address with "email_verified": true, so a provider that sends no email_verified lets nobody in.',
      'Sign in once to see that it works. Providers other than APS may need the scopes openid and email.'
    )
  ]
}
