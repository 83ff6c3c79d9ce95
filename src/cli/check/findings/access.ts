import type { Config } from '../../../config/settings.js'
import { type Finding, findingsFor } from '../finding.js'

const { warning } = findingsFor('access')

/** Warns that the access list needs certain claims. Only a real login shows if the provider sends these claims. */
export function access({ access: { allow } }: Config): Finding[] {
  if (!allow) return []
  return [
    warning(
      'access.allow admits only accounts whose user info (or ID token, if there is no user info endpoint) has an e-mail address with "email_verified": true. If the provider does not send email_verified, nobody can sign in.',
      'Sign in once to test this. Providers other than APS may need the scopes openid and email.'
    )
  ]
}
