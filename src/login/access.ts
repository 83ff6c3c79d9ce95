/**
 * Decides which accounts may sign in (setting `access.allow`), at a login and at every refresh. An account may sign in if one of the
 * entries matches. If the checked ID token of the response has a claim, its value decides. Only claims that the ID token lacks are
 * taken from the user info of the same user.
 */

import { isJsonObject } from '../base/json.js'
import {
  type AccessEntry,
  type ClaimEntry,
  type EmailAddress,
  isClaimEntry,
  parseEmailAddress
} from '../config/types/access-entry.js'
import type { IdentityProvider } from '../provider/client.js'
import type { UserInfo } from '../provider/id-token.js'
import { isRefusedByUserInfo, ProviderError } from '../provider/provider-error.js'
import type { Denial } from '../sessions/index.js'
import { type AuthenticationRequirements, createAuthenticationRule } from './authentication.js'

/**
 * Creates the rule, which returns undefined if the account may sign in.
 * @param entries the entries of the setting `access.allow`. An entry for a domain does not include its sub-domains.
 */
export function createAccessRule(entries: readonly AccessEntry[]) {
  const claims = entries.filter(isClaimEntry)
  const addresses = entries.flatMap(entry => (isClaimEntry(entry) ? [] : [entry]))
  const listed = new Set(addresses.map(addressKey))

  function problemOfAddress(sources: readonly UserInfo[]): Denial['problem'] | undefined {
    // Both claims must come from one source. Otherwise, one source could confirm an address that only the other one names.
    const { email, email_verified } = sources.find(hasAddress) ?? sources.findLast(({ email }) => email != null) ?? {}
    const address = typeof email === 'string' ? parseEmailAddress(email) : undefined
    if (!address || address.localPart === '') return 'no_email'
    // OpenID Connect Core section 5.1 defines a boolean. The string "true", which some providers send, is not accepted.
    if (email_verified !== true) return 'not_verified'
    const isListed =
      listed.has(addressKey(address)) || listed.has(addressKey({ localPart: '', domain: address.domain }))
    return isListed ? undefined : 'not_listed'
  }

  /** @param sources the claims of the ID token, the user info, or both, in this order. The first source that has a claim decides it */
  return function decide(...sources: readonly [UserInfo, ...UserInfo[]]): Denial | undefined {
    const found = (claim: string) => sources.map(source => valueAt(source, claim)).find(value => value !== undefined)
    if (claims.some(entry => fits(entry, found(entry.claim)))) return undefined
    const problem = addresses.length > 0 ? problemOfAddress(sources) : undefined
    if (addresses.length > 0 && problem === undefined) return undefined
    const isMissing = ({ claim }: ClaimEntry) => found(claim) === undefined
    const missing = [...new Set(claims.filter(isMissing).map(({ claim }) => claim))]
    const strings = new Set(claims.filter(entry => hasInString(entry, found(entry.claim))).map(({ claim }) => claim))
    const reason = claims.every(isMissing) ? 'no_claim' : 'not_listed'
    return { reason: 'denied', problem: problem ?? reason, missing, ...(strings.size > 0 && { strings: [...strings] }) }
  }
}

function hasAddress({ email, email_verified }: UserInfo): boolean {
  return email != null && email_verified != null
}

function fits({ value }: ClaimEntry, found: unknown): boolean {
  return (Array.isArray(found) ? found : [found]).some(item => isScalar(item) && String(item) === value)
}

/** True if a claim is one string that has the value in it. It is not split, because a value may contain any character. */
function hasInString({ value }: ClaimEntry, found: unknown): boolean {
  return typeof found === 'string' && found.split(/[\s,;]+/).includes(value)
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

/**
 * Returns the value at a path such as `realm_access.roles`. The name of a claim may itself contain dots, as in
 * `https://example.com/roles`. Returns undefined if there is no such value.
 */
function valueAt(source: unknown, path: string): unknown {
  if (!isJsonObject(source)) return undefined
  if (Object.hasOwn(source, path)) return source[path] ?? undefined
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const name = path.slice(0, dot)
    const found = Object.hasOwn(source, name) ? valueAt(source[name], path.slice(dot + 1)) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

function addressKey({ localPart, domain }: EmailAddress): string {
  return `${localPart}@${domain}`
}

/** The checked claims of an ID token. */
export type CheckedClaims = UserInfo & { readonly sub: string }

/**
 * What an ID token alone says about an account:
 * - `allowed`: the account may sign in
 * - `denied`: the ID token has all claims that the list is about, and none of them allows the account
 * - `incomplete`: the ID token lacks some of these claims, or the response had no ID token
 */
export type Judgement = 'allowed' | 'denied' | 'incomplete'

export type Access = ReturnType<typeof createAccess>

interface AccessRequest {
  /** Undefined if there is no ID token. */
  readonly claims: CheckedClaims | undefined
  /** The `sub` of the session, if there is no ID token. */
  readonly subject?: string | undefined
  /** True for the ID token of a login, which must show how the user has signed in. */
  readonly isLogin?: boolean
  /** The access token for the user info. */
  readonly accessToken: string
  /**
   * True if the user info may lack claims of the ID token: for a login, and if the ID token of the login alone allowed the account.
   * Then the ID token alone decides if the user info endpoint refuses the access token.
   */
  readonly mayRefuse: boolean
}

interface AccessOptions extends AuthenticationRequirements {
  /** The setting `access.allow`. If undefined or empty, every account may sign in. */
  readonly allow?: readonly AccessEntry[] | undefined
}

export function createAccess(
  { allow: entries = [], ...requirements }: AccessOptions,
  idp: Pick<IdentityProvider, 'endpoint' | 'userInfo'>
) {
  const rule = entries.length > 0 ? createAccessRule(entries) : () => undefined
  const weaknessOf = createAuthenticationRule(requirements)

  function lacksClaims(claims: UserInfo): boolean {
    return entries.some(entry =>
      isClaimEntry(entry) ? valueAt(claims, entry.claim) === undefined : !hasAddress(claims)
    )
  }

  /** @param claims undefined if there is no ID token */
  function judge(claims: CheckedClaims | undefined): Judgement {
    if (!claims) return entries.length > 0 ? 'incomplete' : 'allowed'
    if (weaknessOf(claims, false)) return 'denied'
    if (rule(claims) === undefined) return 'allowed'
    return lacksClaims(claims) ? 'incomplete' : 'denied'
  }

  return {
    judge,
    /**
     * Decides from the ID token whether the account is allowed. If the ID token lacks some of the claims, also reads the user info.
     * @throws OAuthError or ProviderError if the claims of the account cannot be read
     */
    async decide({ claims, subject, accessToken, mayRefuse, isLogin = false }: AccessRequest) {
      // Without an ID token, a login has not shown how the user has signed in.
      const weakness = weaknessOf(claims ?? {}, isLogin)
      if (weakness || entries.length === 0) return weakness
      if (claims && judge(claims) !== 'incomplete') return rule(claims)
      const userinfoEndpoint = await idp.endpoint('userinfoEndpoint')
      if (userinfoEndpoint !== undefined) {
        try {
          const userInfo = await idp.userInfo(accessToken, claims?.sub ?? subject)
          if (claims) return rule(claims, userInfo)
          const denial = rule(userInfo)
          if (denial && mayRefuse && !isLogin && lacksClaims(userInfo)) throw undecided('the user info lacks claims')
          return denial
        } catch (error) {
          // Entra's user info endpoint refuses an access token for another API, so it never tells more than the ID token.
          if (claims && mayRefuse && isRefusedByUserInfo(error)) return rule(claims)
          throw error
        }
      }
      if (claims) return rule(claims)
      const advice = isLogin ? '; add openid and email to the scopes' : ''
      throw undecided(`the provider has no user info endpoint${advice}`)
    }
  }
}

/** The error for an account about which neither an ID token nor the user info says enough. */
function undecided(why: string): ProviderError {
  return new ProviderError('userinfo', 'invalid_response', `the token response had no ID token, and ${why}`)
}

/** Returns the fields of a log line about a denial. They contain no data of the account. */
export function denialFields({ problem, missing, strings, found, required }: Denial) {
  return {
    access: problem,
    ...(missing.length > 0 && { missing_claims: missing }),
    ...(strings && { string_claims: strings }),
    ...(required !== undefined && { required, found })
  }
}
