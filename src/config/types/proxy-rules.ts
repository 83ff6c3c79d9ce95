/** Parses and checks the rules of the API proxy. A rule is written as `METHODS PATH TARGET [option …]`. */
import { coversPattern, type PathPattern, parsePattern, whyNoPattern } from './path-pattern.js'
import { duration, HOUR } from './units.js'
import { AUTH_PATH, HEALTH_ROUTES, isLoopback, maskUrl } from './urls.js'
import { REJECTED, type ValueType } from './value-type.js'

export interface ProxyRule {
  /** The path pattern as written. Metrics, logs and traces contain it. */
  readonly route: string
  /** The rule as it was written, with single spaces. */
  readonly text: string
  /** The allowed methods. GET also allows HEAD. */
  readonly methods: readonly string[]
  readonly path: PathPattern
  /** The scheme, host and port of the target. */
  readonly targetOrigin: string
  readonly target: PathPattern
  readonly token: 'internal' | 'public'
  /** Overrides `apiProxy.timeout`. */
  readonly timeoutSeconds: number | undefined
  /** True if the text that a `*` matches may contain encoded slashes. */
  readonly encodedSlashes: boolean
  /** False if links on other sites must not open a URL of this rule. */
  readonly acceptsLinks: boolean
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** The type of `apiProxy.timeout` and of the option `timeout` of a rule. */
export const ruleTimeout = duration(1, HOUR)

const FORM = 'METHODS PATH TARGET [token=internal|public] [timeout=DURATION] [plain-http] [encoded-slashes] [no-links]'

/** The type of the setting `apiProxy.rules`. */
export const proxyRules: ValueType<readonly ProxyRule[], readonly string[]> = {
  allowed: `rules of the form ${FORM}`,
  json: { type: 'array', items: { type: 'string', pattern: '^\\s*[A-Z,]+\\s+/\\S+\\s+https?://\\S+(\\s+\\S+)*\\s*$' } },
  isRepeatable: true,
  sample: ['GET /api/hubs/** https://developer.api.autodesk.com/project/v1/hubs/**'],
  fromString: splitRules,
  parse(written) {
    if (!Array.isArray(written) || !written.every(item => typeof item === 'string')) return REJECTED
    const { rules, problems } = parseRules(written)
    return problems.length > 0 ? { problems } : { value: rules }
  },
  write: rules => rules.map(({ text }) => text),
  mask: texts => texts.map(maskRule)
}

/** Masks the target of a rule. */
export function maskRule(text: string): string {
  return text.replace(/https?:\S+/gi, maskUrl)
}

/**
 * Splits the value of a variable into rules. A new rule begins at each word that consists only of letters and commas, because
 * such a word can only be the methods of a rule. Paths, targets and options contain other characters.
 */
function splitRules(value: string): string[] {
  const rules: string[] = []
  for (const word of value.split(/\s+/).filter(word => word !== '')) {
    if (/^[A-Za-z,]+$/.test(word) || rules.length === 0) rules.push(word)
    else rules.push(`${rules.pop()} ${word}`)
  }
  return rules
}

/**
 * Parses all rules and collects every problem, so that the operator can fix all of them before the next start. Each
 * problem is a message with the number of the rule and the allowed values.
 */
export function parseRules(texts: readonly string[]) {
  const rules: ProxyRule[] = []
  const problems: string[] = []
  for (const [index, given] of texts.entries()) {
    const text = given.trim().replace(/\s+/g, ' ')
    const before = problems.length
    const reject: Reject = (reason, advice) => {
      problems.push(`cannot be used, because of rule ${index + 1}: ${reason}. ${advice}`)
      return undefined
    }
    const rule = parseRule(text, reject)
    if (!rule || problems.length > before) continue
    if (isHiddenByEarlier(rule, rules))
      reject(
        'earlier rules already match every request that this rule would match',
        'Remove the rule, or write it before these rules.'
      )
    rules.push(rule)
  }
  return { rules, problems }
}

/**
 * Reports a problem with a reason, which continues "because …", and with advice, which is a sentence. Returns undefined, so that
 * a parser can end with `return reject(…)`.
 */
type Reject = (reason: string, advice: string) => undefined

function parseRule(text: string, reject: Reject): ProxyRule | undefined {
  const [methodList = '', pathText, targetText, ...optionTexts] = text.split(' ')
  if (pathText === undefined || targetText === undefined) return reject('it is incomplete', `Write ${FORM}.`)
  const methods = [...new Set(methodList.split(','))]
  if (!methods.every(method => METHODS.includes(method))) {
    reject('it does not begin with HTTP methods that a rule can have', `Use ${METHODS.join(', ')} (GET includes HEAD).`)
  }
  const path = parsePath(pathText, reject)
  const options = parseOptions(optionTexts, reject)
  const target = parseTarget(targetText, options.isPlainHttp, reject)
  if (!path || !target) return undefined
  if (countWildcards(path) !== countWildcards(target.pattern) || path.hasRest !== target.pattern.hasRest) {
    reject('the wildcards of path and target do not correspond', 'Use the same wildcards in the same order.')
  }
  const { isPlainHttp: _, ...ofRule } = options
  return { route: pathText, text, methods, path, targetOrigin: target.origin, target: target.pattern, ...ofRule }
}

function parsePath(text: string, reject: Reject): PathPattern | undefined {
  const pattern = checkPattern(text, (reason, advice) => reject(`its path cannot be used: ${reason}`, advice))
  if (!pattern) return undefined
  const { segments } = pattern
  if (segments.every(segment => segment === '')) {
    const advice = 'Use a path with at least one segment, such as /api/hubs/**.'
    return reject('its path matches every path of this server', advice)
  }
  if (isReserved(segments)) {
    const { healthz, readyz } = HEALTH_ROUTES
    reject('its path belongs to this server itself', `Use a path outside ${AUTH_PATH}, ${healthz} and ${readyz}.`)
  }
  return pattern
}

/** True if this server responds to the path itself. The proxy does not forward such a path, even if a wildcard matches it. */
export function isReserved(segments: readonly string[]): boolean {
  return RESERVED.some(reserved => reserved.every((segment, index) => segments[index] === segment))
}

const RESERVED = [AUTH_PATH, ...Object.values(HEALTH_ROUTES)].map(path => path.slice(1).split('/'))

function checkPattern(text: string, reject: Reject): PathPattern | undefined {
  const why = whyNoPattern(text)
  if (why === undefined) return parsePattern(text)
  return reject(why, 'Use literal segments, * for one whole segment, and /** at the end, without a query.')
}

function parseTarget(text: string, isPlainHttp: boolean, reject: Reject) {
  const rejectTarget: Reject = (reason, advice) => reject(`its target cannot be used: ${reason}`, advice)
  const [, scheme, authority = '', rest = '/'] = /^(https?):\/\/([^/?#\\]+)(.*)$/i.exec(text) ?? []
  if (!scheme || authority.includes('*') || !URL.canParse(`${scheme}://${authority}`)) {
    return rejectTarget('it is not a URL', 'Use https://host/path, or http://host/path with the option plain-http.')
  }
  const { origin, protocol } = new URL(`${scheme}://${authority}`)
  if (authority.includes('@')) rejectTarget('it contains user information', 'Remove the part before the @.')
  if (/[?#]/.test(rest)) return rejectTarget('it contains a query or a fragment', 'Remove this part.')
  if (protocol === 'http:' && !isPlainHttp && !isLoopback(origin)) {
    rejectTarget('plain http sends tokens over the network unencrypted', 'Use https, or the option plain-http.')
  }
  const pattern = checkPattern(rest === '' ? '/' : rest, rejectTarget)
  return pattern && { origin, pattern }
}

function parseOptions(texts: readonly string[], reject: Reject) {
  const given = new Map<string, string>()
  for (const text of texts) {
    const [name = '', value] = text.split('=')
    const isKnown = OPTIONS.get(name)?.test(text) ?? false
    if (!isKnown) {
      reject('it has an unknown option', `Use ${OPTION_FORMS}.`)
    } else if (given.has(name)) reject(`the option ${name} is given twice`, 'Write it once.')
    given.set(name, value ?? '')
  }
  const timeout = given.get('timeout')
  const parsed = ruleTimeout.parse(timeout)
  const timeoutSeconds = 'value' in parsed ? parsed.value : undefined
  if (timeout !== undefined && timeoutSeconds === undefined) {
    reject('its timeout is not valid', `Use ${ruleTimeout.allowed}.`)
  }
  return {
    token: given.get('token') === 'public' ? 'public' : 'internal',
    timeoutSeconds,
    encodedSlashes: given.has('encoded-slashes'),
    acceptsLinks: !given.has('no-links'),
    isPlainHttp: given.has('plain-http')
  } as const
}

const OPTIONS = new Map([
  ['token', /^token=(internal|public)$/],
  ['timeout', /^timeout=\w+$/],
  ['plain-http', /^plain-http$/],
  ['encoded-slashes', /^encoded-slashes$/],
  ['no-links', /^no-links$/]
])
const OPTION_FORMS = 'token=internal, token=public, timeout=DURATION, plain-http, no-links or encoded-slashes'

function countWildcards({ segments }: PathPattern): number {
  return segments.filter(segment => segment === '*').length
}

function isHiddenByEarlier({ methods, path }: ProxyRule, earlier: readonly ProxyRule[]): boolean {
  return methods.every(method => earlier.some(rule => rule.methods.includes(method) && coversPattern(rule.path, path)))
}
