import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { listWith, type StringCheck, stringWith, type ValueType } from './value-type.js'

// The types of the client id and of the settings that contain secrets, and the checks that reject a weak session secret
// or a placeholder.

// The syntaxes of references to secrets. A reference stands in repositories, so it must not become a secret if nothing has replaced it.
const REFERENCES: readonly (readonly [syntax: string, isReference: (secret: string) => boolean])[] = [
  ['Azure App Service', matches(/^@Microsoft\.\w+\(.*\)$/is)],
  ['Azure Container Apps', matches(/^(secretref|keyvaultref):\S+$/i)],
  ['AWS', matches(/^(\{\{resolve:.*\}\}|arn:aws[\w-]*:\S+)$/is)],
  ['Google Secret Manager', matches(/^projects\/[^\s/]+\/secrets\/\S+$/)],
  ['Vault', matches(/^(!?vault:\S+|<path:.+>)$/is)],
  ['SOPS', matches(/^ENC\[.*\]$/s)],
  ['Kubernetes or Azure Pipelines', matches(/^\$\([\w.-]+\)$/)],
  ['Compose', matches(/^\$(\{.*\}|[A-Z_][A-Z0-9_]*)$/s)],
  ['PowerShell', matches(/^\$env:\w+$/i)],
  ['Windows', matches(/^%\w+%$/)],
  ['Helm', matches(/^\{\{.*\}\}$/s)],
  // Such as op://vault/item of 1Password, vault://, sm:// and ref+awssecrets://.
  ['a URL', matches(/^[a-z][a-z0-9+.-]*:\/\/\S+$/i)],
  // A random secret may begin with a slash, so a path counts only if its file exists.
  [
    'a path (use the variable that ends in _FILE)',
    secret => /^(\.{0,2}\/|[a-z]:\\)/i.test(secret) && existsSync(secret)
  ]
]

function matches(pattern: RegExp): (secret: string) => boolean {
  return secret => pattern.test(secret)
}

const shortestSecret = 32

const allowed = `at least ${shortestSecret} random characters (\`npx platform-auth-server secret\` prints some)`
const json = { type: 'string', minLength: shortestSecret, pattern: '^\\s*\\S+\\s*$' }

/**
 * The type of the secret that encrypts sessions. The checks are strict, because anyone who guesses the secret can read
 * and forge every session.
 */
export const sessionSecret: ValueType<string> = {
  allowed,
  json,
  parse: stringWith(...checksFor('it'))
}

export const sessionSecrets: ValueType<readonly string[]> = {
  allowed: 'session secrets, separated by white space',
  json: { type: ['string', 'array'], items: json },
  parse: listWith(...checksFor('one of them'))
}

/** Returns 384 random bits as 64 characters, which need no quotation marks in any file or shell. */
export function newSecret(): string {
  return randomBytes(48).toString('base64url')
}

// The placeholders in the samples and documents of this server, and those that are common elsewhere. A real client id may contain
// such a word, so the pattern must match the whole string.
const PLACEHOLDER =
  /^(<.*>|\$\{.*\}|replace-.*|change-?me|((the|your)[-_ ]?(.*[-_ ])?)?(client|app(lication)?)[-_ ]?(id|secret)([-_ ](goes[-_ ])?here)?)$/i

const placeholderReason = 'it is a placeholder'

/** The type of the OAuth client id. A placeholder is rejected, because the provider would only report an unknown client. */
export const clientId: ValueType<string> = {
  allowed: 'the client id as the provider shows it (visible ASCII characters)',
  json: { type: 'string', pattern: '^(?!replace-|the-client-id$)[\\x21-\\x7e]+$' },
  parse: stringWith(
    { accepts: id => !PLACEHOLDER.test(id), reason: placeholderReason },
    // RFC 6749 appendix A.1. A colon, which ends the user name in HTTP Basic (RFC 7617 section 2), is form-encoded before.
    { accepts: id => /^[\x21-\x7e]+$/.test(id) }
  )
}

/** The client secret (RFC 6749 appendix A.2). The provider generated this secret, so its strength is not checked. */
export const clientSecret: ValueType<string> = {
  allowed: 'the client secret as the provider shows it',
  json: { type: 'string', pattern: '^[\\x20-\\x7e]+$' },
  parse: stringWith(
    {
      accepts: secret => /^[\x20-\x7e]+$/.test(secret),
      reason: 'it contains characters that a client secret cannot contain'
    },
    { accepts: secret => hasNoPlaceholder(secret) && !PLACEHOLDER.test(secret), reason: placeholderReason }
  ),
  doubt(secret) {
    const [syntax] = REFERENCES.find(([, isReference]) => isReference(secret)) ?? []
    return (
      syntax && `is a reference in the syntax of ${syntax}, which nothing has replaced. Set it to the secret itself.`
    )
  }
}

/** @param subject the beginning of each reason */
function checksFor(subject: string): readonly StringCheck[] {
  const notRandom =
    'does not look random, because it repeats characters or words, or consists of consecutive characters'
  return [
    ...REFERENCES.map(([syntax, isReference]) => ({
      accepts: (secret: string) => !isReference(secret),
      reason: `${subject} is a reference in the syntax of ${syntax}, which nothing has replaced`
    })),
    // In session.previousSecrets, white space separates secrets. If such a secret were accepted, it could not be rotated. The
    // output of `openssl rand -base64 96`, for example, has two lines.
    {
      accepts: secret => !/\s/.test(secret),
      reason: `${subject} contains a space or a line break, at which session.previousSecrets would divide it`
    },
    {
      accepts: secret => [...secret].length >= shortestSecret,
      reason: `${subject} is shorter than ${shortestSecret} characters`
    },
    { accepts: isNoExample, reason: `${subject} is an example or a placeholder` },
    { accepts: isVaried, reason: `${subject} ${notRandom}` }
  ]
}

// A secret counts as an example if it contains a typical word such as `changeme` as a separate word, which a random string
// practically never does. In a client secret, which the provider has chosen, only the words of placeholders are rejected.

function hasNoPlaceholder(secret: string): boolean {
  return !hasWord(secret, 'change|changeme|replace|placeholder|your')
}

function isNoExample(secret: string): boolean {
  return hasNoPlaceholder(secret) && !hasWord(secret, 'example|sample|dummy|secret|password|supersecret')
}

function hasWord(secret: string, words: string): boolean {
  return new RegExp(`(^|[^a-z0-9])(${words})([^a-z0-9]|$)`, 'i').test(secret)
}

/**
 * False if a secret consists of few different characters, of repeated pieces or words, or of mostly consecutive
 * characters.
 */
function isVaried(secret: string): boolean {
  return new Set(secret).size >= 8 && !hasPeriod(secret) && !repeatsWords(secret) && !isSequence(secret)
}

/** True if at most half of the words in a passphrase are distinct. */
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
