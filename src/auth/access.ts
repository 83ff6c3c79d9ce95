/** Decides who may sign in: compares the user info of an account with the entries of `access.allow`. */
import { type EmailAddress, parseEmailAddress } from '../config/access-entry.js'
import type { UserInfo } from '../idp/client.js'

/**
 * - `allowed`: an entry names the account's e-mail address or its domain
 * - `no_email`: the user info has no usable e-mail address
 * - `not_verified`: the provider does not say that the address belongs to the account
 * - `not_listed`: no entry names it
 */
export type AccessDecision = 'allowed' | 'no_email' | 'not_verified' | 'not_listed'

export type AccessRule = (userInfo: UserInfo) => AccessDecision

/**
 * @param entries e-mail addresses and `@domain`s, valid as the setting `access.allow` requires. An entry for a domain does
 *   not include its sub-domains.
 */
export function createAccessRule(entries: readonly string[]): AccessRule {
  const listed = new Set(entries.map(entry => keyOf(parseEmailAddress(entry) as EmailAddress)))

  return function decide({ email, email_verified }) {
    const address = typeof email === 'string' ? parseEmailAddress(email) : undefined
    if (!address || address.localPart === '') return 'no_email'
    // OpenID Connect Core section 5.1. Some providers send the text "true", which says nothing about how they checked it.
    if (email_verified !== true) return 'not_verified'
    const isListed = listed.has(keyOf(address)) || listed.has(keyOf({ localPart: '', domain: address.domain }))
    return isListed ? 'allowed' : 'not_listed'
  }
}

function keyOf({ localPart, domain }: EmailAddress): string {
  return `${localPart}@${domain}`
}
