/**
 * The entries of `access.allow`. Each entry is an e-mail address, a domain that begins with `@`, or a claim and its
 * value.
 */
import { domainToASCII, domainToUnicode } from 'node:url'
import { itemsOf, REJECTED, type ValueType } from './value-type.js'

export interface EmailAddress {
  /** An empty string in the entry for a whole domain. */
  readonly localPart: string
  /** The domain in ASCII (RFC 5890 section 2.3.2.1) and in lower case. */
  readonly domain: string
}

const DOMAIN = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/
// White space and control characters.
const NOT_IN_AN_ADDRESS = /[\s\p{Cc}]/u

/**
 * Parses an e-mail address, or an entry for a whole domain. ASCII letters become lower case. A domain with non-ASCII letters must
 * be given exactly as it is registered. Otherwise, a letter that only looks like an ASCII letter could be replaced with the ASCII
 * letter. Returns undefined for any other string.
 */
export function parseEmailAddress(string: string): EmailAddress | undefined {
  const parts = string.split('@')
  const [localPart, written] = parts
  if (parts.length !== 2 || localPart === undefined || !written || NOT_IN_AN_ADDRESS.test(string)) return undefined
  const domain = asciiDomain(lowerCase(written))
  return domain === undefined ? undefined : { localPart: lowerCase(localPart), domain }
}

function asciiDomain(written: string): string | undefined {
  const ascii = domainToASCII(written)
  // The conversion also corrects invalid input, and converts the Kelvin sign (U+212A) to a k. Input that is changed in
  // this way is rejected.
  const isUnchanged = ascii === written || domainToUnicode(ascii) === written
  return isUnchanged && DOMAIN.test(ascii) ? ascii : undefined
}

// String.prototype.toLowerCase would convert the Kelvin sign (U+212A) to a k.
function lowerCase(string: string): string {
  return string.replace(/[A-Z]/g, letter => letter.toLowerCase())
}

interface AddressEntry extends EmailAddress {
  /** The entry as it was written. */
  readonly text: string
}

/** An entry such as `groups=admins`. */
export interface ClaimEntry {
  /** The name of a claim, or a path of names that are separated by dots. It contains no white space. */
  readonly claim: string
  readonly value: string
  readonly text: string
}

export type AccessEntry = AddressEntry | ClaimEntry

export function isClaimEntry(entry: AccessEntry): entry is ClaimEntry {
  return 'claim' in entry
}

// The value may contain spaces, because an item of a list in a settings file may contain them.
const CLAIM = /^([^\s=@\p{Cc}]+)=([^\s\p{Cc}](?:[^\p{Cc}]*[^\s\p{Cc}])?)$/u

// An entry for this claim is rejected, because it would also match an address that is not verified. For an entry that
// is an e-mail address, the server checks `email_verified`.
const EMAIL = 'email'

function parseEntry(text: string): AccessEntry | undefined {
  const [, claim, value] = CLAIM.exec(text) ?? []
  if (claim !== undefined && value !== undefined) {
    return claim.split('.').includes('') ? undefined : { claim, value, text }
  }
  const address = parseEmailAddress(text)
  return address && { ...address, text }
}

/** The entry that admits everyone. Its value is an empty list, so code that overlooks this case admits nobody. */
const EVERYONE = '*'

export const accessEntries: ValueType<readonly AccessEntry[], readonly string[]> = {
  allowed:
    'e-mail addresses, domains such as @example.com, and claims such as groups=admins, separated by spaces, or * for everyone',
  json: {
    type: ['string', 'array'],
    items: { type: 'string', pattern: '^(\\*|[^\\s@]*@[^\\s@]+|[^\\s=@]+=\\S(.*\\S)?)$' },
    minItems: 1
  },
  parse(written) {
    const items = itemsOf(written) ?? []
    if (items.length === 0) return REJECTED
    if (items.includes(EVERYONE)) {
      return items.length === 1 ? { value: [] } : { reason: '* admits everyone, so the other entries have no effect' }
    }
    const entries = items.map(parseEntry)
    const unknown = entries.indexOf(undefined) + 1
    if (unknown > 0)
      return {
        reason: `entry ${unknown} is not an e-mail address, a domain that begins with @, or a claim and its value`
      }
    const known = entries.filter(entry => entry !== undefined)
    const unverified = known.findIndex(entry => isClaimEntry(entry) && entry.claim === EMAIL) + 1
    if (unverified === 0) return { value: known }
    const reason = `entry ${unverified} would also match an address that the provider has not verified (write only the address)`
    return { reason }
  },
  write: entries => (entries.length === 0 ? [EVERYONE] : entries.map(({ text }) => text))
}
