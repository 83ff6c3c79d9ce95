import { asText, stringOrStrings, type ValueType } from './types.js'

// The secrets among the settings, and the judgement of which are too weak to seal a session with.

export const shortestSecret = 32

const allowed = `at least ${shortestSecret} random characters (\`npx platform-auth-server secret\` prints some)`
const json = { type: 'string', minLength: shortestSecret }

/** What sessions are sealed with. Whoever guesses it can read and forge every session, hence the strictness. */
export const sessionSecret: ValueType<string> = {
  allowed,
  json,
  fromText: asText,
  schema: v =>
    v.pipe(
      v.string(),
      v.check(isLongEnough, `it ${tooShort}`),
      v.check(isNoExample, `it ${example}`),
      v.check(isVaried, `it ${plain}`)
    )
}

export const sessionSecrets: ValueType<readonly string[]> = {
  allowed: `secrets of the same kind, separated by white space`,
  json: { type: ['string', 'array'], items: json },
  fromText: asText,
  schema: v =>
    v.pipe(
      stringOrStrings(v),
      v.checkItems(isLongEnough, `one of them ${tooShort}`),
      v.checkItems(isNoExample, `one of them ${example}`),
      v.checkItems(isVaried, `one of them ${plain}`)
    )
}

/** RFC 6749 appendix A.2; the provider made it, so its strength is not ours to judge. */
export const clientSecret: ValueType<string> = {
  allowed: 'the client secret as the provider shows it',
  json: { type: 'string', pattern: '^[\\x20-\\x7e]+$' },
  fromText: asText,
  schema: v =>
    v.pipe(
      v.string(),
      v.check(secret => /^[\x20-\x7e]+$/.test(secret), 'it holds characters that no client secret has'),
      v.check(isNoPlaceholder, 'it is a placeholder')
    )
}

const tooShort = `is shorter than ${shortestSecret} characters`
const example = 'is an example, or was never replaced'
const plain = 'repeats itself'

function isLongEnough(secret: string): boolean {
  return [...secret].length >= shortestSecret
}

// Examples give themselves away by a word that stands by itself; in random text such a word between two separators
// practically never comes up. A client secret is not ours to choose, so there only the words of a placeholder count.

function isNoPlaceholder(secret: string): boolean {
  return !hasWord(secret, 'change|changeme|replace|placeholder|your')
}

function isNoExample(secret: string): boolean {
  return isNoPlaceholder(secret) && !hasWord(secret, 'example|sample|dummy|secret|password|supersecret')
}

function hasWord(text: string, words: string): boolean {
  return new RegExp(`(^|[^a-z0-9])(${words})([^a-z0-9]|$)`, 'i').test(text)
}

/** False for few different characters, repeated pieces or words, and characters that mostly count up or down. */
function isVaried(secret: string): boolean {
  return new Set(secret).size >= 8 && !hasPeriod(secret) && !repeatsWords(secret) && !isSequence(secret)
}

/** True when at most half of the words of a passphrase are different ones. */
function repeatsWords(secret: string): boolean {
  const words = secret.toLowerCase().match(/[a-z0-9]{3,}/g) ?? []
  return words.length >= 4 && new Set(words).size <= words.length / 2
}

function hasPeriod(secret: string): boolean {
  const half = Math.floor(secret.length / 2)
  return Array.from({ length: half }, (_, index) => index + 1).some(period => secret.startsWith(secret.slice(period)))
}

function isSequence(secret: string): boolean {
  const codes = [...secret].map(character => character.codePointAt(0) ?? 0)
  const steps = codes.filter((code, index) => index > 0 && Math.abs(code - (codes[index - 1] ?? 0)) === 1)
  return steps.length > codes.length * 0.7
}
