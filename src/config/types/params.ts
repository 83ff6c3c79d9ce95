import { isJsonObject } from '../../base/json.js'
import type { Parsed, ValueType } from './value-type.js'

type Params = Readonly<Record<string, string>>

// The server sets these parameters itself. A fixed `nonce`, `state` or `code_challenge` would make logins
// insecure, and `request` or `request_uri` could replace any other parameter (RFC 9101 section 5).
const RESERVED =
  /^(client_id|client_secret|client_assertion|client_assertion_type|response_type|response_mode|redirect_uri|scope|state|nonce|code|code_challenge|code_challenge_method|request|request_uri|registration|id_token_hint|dpop_jkt|post_logout_redirect_uri)$/i

/** The age of an authentication in seconds (OpenID Connect Core section 3.1.2.1), which the server checks after the login. */
export const MAX_AGE = 'max_age'

const NAME = /^[A-Za-z][\w.-]*$/

/** The type of a setting with parameters for the URL of an endpoint. */
function params(example: string): ValueType<Params> {
  return {
    allowed: `parameters such as ${example}, or a mapping of names to strings`,
    json: {
      type: ['string', 'object'],
      additionalProperties: { type: 'string' },
      propertyNames: { pattern: NAME.source }
    },
    // The value of a parameter may be a secret of the provider, and so may a word without a value.
    mask: params => Object.entries(params).map(([name, value]) => (/^=*$/.test(value) ? '…' : name)),
    parse(written): Parsed<Params> {
      const pairs = pairsOf(written)
      if (!pairs) return {}
      const names = pairs.map(([name]) => name)
      if (!names.every(name => NAME.test(name))) return { reason: 'one of the names is not the name of a parameter' }
      const reserved = names.find(name => RESERVED.test(name))
      if (reserved !== undefined) return { reason: `this server sets ${reserved.toLowerCase()} itself` }
      if (new Set(names).size < names.length) return { reason: 'one of the names is repeated' }
      const maxAge = pairs.find(([name]) => name === MAX_AGE)?.[1] ?? '0'
      if (!/^\d{1,9}$/.test(maxAge)) return { reason: `${MAX_AGE} is not a number of seconds` }
      return { value: Object.fromEntries(pairs) }
    }
  }
}

export const authorizationParams = params('audience=https://api.example&acr_values=mfa')
export const logoutParams = params('logout_uri=https://app.example/')

function pairsOf(written: unknown): (readonly [name: string, value: string])[] | undefined {
  if (typeof written === 'string') return [...new URLSearchParams(written)]
  const pairs = isJsonObject(written) ? Object.entries(written) : []
  const isValid = isJsonObject(written) && pairs.every((pair): pair is [string, string] => typeof pair[1] === 'string')
  return isValid ? pairs : undefined
}
