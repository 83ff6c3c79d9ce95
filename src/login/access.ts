/**
 * Decides which accounts may sign in. Compares the e-mail address in the user info or in the checked ID token with the
 * setting `access.allow`.
 */
import { type EmailAddress, parseEmailAddress } from '../config/access-entry.js'
import type { UserInfo } from '../provider/client.js'

/**
 * - `allowed`: an entry is the account's e-mail address or the domain of that address
 * - `no_email`: the claims contain no usable e-mail address
 * - `not_verified`: the provider does not confirm that the e-mail address belongs to the account
 * - `not_listed`: no entry is the account's e-mail address or its domain
 */
export type AccessDecision = 'allowed' | 'no_email' | 'not_verified' | 'not_listed'

export type AccessRule = (claims: UserInfo) => AccessDecision

/**
 * @param entries the entries of the setting `access.allow`. An entry for a domain does not include its sub-domains.
 */
export function createAccessRule(entries: readonly EmailAddress[]): AccessRule {
  const listed = new Set(entries.map(keyOf))

  return function decide({ email, email_verified }) {
    const address = typeof email === 'string' ? parseEmailAddress(email) : undefined
    if (!address || address.localPart === '') return 'no_email'
    // OpenID Connect Core section 5.1 defines a boolean. The text "true", which some providers send, is not accepted.
    if (email_verified !== true) return 'not_verified'
    const isListed = listed.has(keyOf(address)) || listed.has(keyOf({ localPart: '', domain: address.domain }))
    return isListed ? 'allowed' : 'not_listed'
  }
}

function keyOf({ localPart, domain }: EmailAddress): string {
  return `${localPart}@${domain}`
}
