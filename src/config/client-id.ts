import { isPlaceholder, placeholderReason } from './placeholder.js'
import { textWith, type ValueType } from './types.js'

// RFC 6749 appendix A.1, without the colon, which ends the user name in HTTP Basic (RFC 7617 section 2).
const ALLOWED = /^[\x21-\x39\x3b-\x7e]+$/

/** The type of the OAuth client id. A placeholder is rejected, because the provider could only answer that it is unknown. */
export const clientId: ValueType<string> = {
  allowed: 'the client id as the provider shows it (visible ASCII characters, no colon)',
  json: { type: 'string', pattern: '^(?!replace-|the-client-id$)[\\x21-\\x39\\x3b-\\x7e]+$' },
  parse: textWith({ holds: id => !isPlaceholder(id), reason: placeholderReason }, { holds: id => ALLOWED.test(id) })
}
