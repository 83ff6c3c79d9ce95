/** Parses and checks the rules of the API proxy. The text of a rule is `METHODS PATH TARGET [option …]`. */
import { AUTH_PATH, HEALTH_ROUTES, isLoopback, withoutUser } from './addresses.js'
import { quote } from './errors.js'
import { coversPattern, type PathPattern, parsePattern, whyNotExact } from './path-pattern.js'
import { REJECTED, type ValueType } from './types.js'

export interface ProxyRule {
  /** The position in the list, starting with 1. Metrics and logs contain this number. */
  readonly number: number
  /** The text of the rule, with single spaces. */
  readonly text: string
  /** The allowed methods. GET also allows HEAD. */
  readonly methods: readonly string[]
  readonly path: PathPattern
  /** The scheme, host and port of the target. */
  readonly targetOrigin: string
  readonly target: PathPattern
  readonly token: TokenName
  /** Overrides `proxy.timeoutSeconds`. */
  readonly timeoutSeconds: number | undefined
}

type TokenName = 'internal' | 'public'

interface ParsedRules {
  readonly rules: readonly ProxyRule[]
  /** One sentence for each problem, with the rule and the allowed values. */
  readonly problems: readonly string[]
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
export const longestTimeoutSeconds = 3600

/** The type of the setting `proxy.routes`. */
export const proxyRoutes: ValueType<readonly ProxyRule[], readonly string[]> = {
  allowed: 'rules METHODS PATH TARGET [token=internal|public] [timeout=SECONDS] [plain-http]',
  json: { type: 'array', items: { type: 'string', pattern: '^\\s*[A-Z,]+\\s+/\\S+\\s+https?://\\S+(\\s+\\S+)*\\s*$' } },
  isRepeatable: true,
  sample: ['GET /api/hubs/** https://developer.api.autodesk.com/project/v1/hubs/**'],
  fromText: splitRules,
  parse(written) {
    if (!Array.isArray(written) || !written.every(item => typeof item === 'string')) return REJECTED
    const { rules, problems } = parseRules(written)
    return problems.length > 0 ? { problems } : { value: rules }
  },
  write: rules => rules.map(({ text }) => text)
}

/**
 * Splits the text of a variable into rules. A new rule begins at each word that consists only of letters and commas, because
 * such a word can only be the methods of a rule. Paths, targets and options contain other characters.
 */
export function splitRules(text: string): string[] {
  const rules: string[] = []
  for (const word of text.split(/\s+/).filter(word => word !== '')) {
    if (/^[A-Za-z,]+$/.test(word) || rules.length === 0) rules.push(word)
    else rules.push(`${rules.pop()} ${word}`)
  }
  return rules
}

/** Parses all rules and collects every problem, so that the operator can fix all of them before the next start. */
export function parseRules(texts: readonly string[]): ParsedRules {
  const rules: ProxyRule[] = []
  const problems: string[] = []
  for (const [index, given] of texts.entries()) {
    const text = given.trim().replace(/\s+/g, ' ')
    const found: string[] = []
    const rule = parseRule(text, index + 1, problem => found.push(problem))
    if (rule && found.length === 0) {
      if (isHidden(rule, rules)) found.push('it never applies, because earlier rules match all of its requests')
      rules.push(rule)
    }
    problems.push(...found.map(problem => `the rule ${quote(withoutUser(text))} cannot be used: ${problem}`))
  }
  return { rules, problems }
}

function parseRule(text: string, number: number, reject: (problem: string) => void): ProxyRule | undefined {
  const [methodList = '', pathText, targetText, ...optionTexts] = text.split(' ')
  if (pathText === undefined || targetText === undefined) {
    reject('it is incomplete; allowed: METHODS PATH TARGET [token=internal|public] [timeout=SECONDS] [plain-http]')
    return undefined
  }
  const methods = [...new Set(methodList.split(','))]
  for (const method of methods.filter(method => !METHODS.includes(method))) {
    reject(`${quote(method)} is not a method of a rule; allowed: ${METHODS.join(', ')} (GET includes HEAD)`)
  }
  const path = parsePath(pathText, reject)
  const options = parseOptions(optionTexts, reject)
  const target = parseTarget(targetText, options.isPlainHttp, reject)
  if (!path || !target) return undefined
  if (countWildcards(path) !== countWildcards(target.pattern) || path.hasRest !== target.pattern.hasRest) {
    reject('the wildcards of path and target do not correspond; allowed: the same wildcards in the same order')
  }
  const { token, timeoutSeconds } = options
  return { number, text, methods, path, targetOrigin: target.origin, target: target.pattern, token, timeoutSeconds }
}

function parsePath(text: string, reject: (problem: string) => void): PathPattern | undefined {
  const pattern = parsePatternText(text, problem => reject(`the path ${quote(text)} is unusable: ${problem}`))
  if (!pattern) return undefined
  const { segments } = pattern
  if (segments.every(segment => segment === '')) {
    reject(
      `the path ${quote(text)} matches every path of this server; allowed: a path with at least one segment, such as /api/hubs/**`
    )
    return undefined
  }
  if (isReserved(segments)) {
    reject(
      `the path ${quote(text)} belongs to this server itself; allowed: paths outside ${AUTH_PATH}, ${HEALTH_ROUTES.healthz} and ${HEALTH_ROUTES.readyz}`
    )
  }
  return pattern
}

/** True if this server answers the path itself. The proxy does not forward such a path, even if a wildcard matches it. */
export function isReserved(segments: readonly string[]): boolean {
  return RESERVED.some(reserved => reserved.every((segment, index) => segments[index] === segment))
}

const RESERVED = [AUTH_PATH, ...Object.values(HEALTH_ROUTES)].map(path => path.slice(1).split('/'))

function parsePatternText(text: string, reject: (problem: string) => void): PathPattern | undefined {
  const why = text.startsWith('/') ? whyNotExact(text) : 'it does not begin with a slash'
  if (why !== undefined) {
    reject(`${why}; allowed: literal segments, * for one segment, and /** at the end`)
    return undefined
  }
  if (text.includes('?')) {
    reject('it holds a query; allowed: a path without a query (the query of each request is forwarded)')
    return undefined
  }
  const pattern = parsePattern(text)
  if (pattern.segments.some(segment => segment !== '*' && segment.includes('*'))) {
    reject('it has a * inside a segment; allowed: * for one whole segment, and /** at the end')
    return undefined
  }
  return pattern
}

interface Target {
  readonly origin: string
  readonly pattern: PathPattern
}

function parseTarget(text: string, isPlainHttp: boolean, reject: (problem: string) => void): Target | undefined {
  const rejectTarget = (problem: string) => reject(`the target ${quote(withoutUser(text))} is unusable: ${problem}`)
  const [, scheme, authority = '', rest = '/'] = /^(https?):\/\/([^/?#\\]+)(.*)$/i.exec(text) ?? []
  if (!scheme || authority.includes('*') || !URL.canParse(`${scheme}://${authority}`)) {
    rejectTarget('it is not an address; allowed: https://host/path, or http://host/path with the option plain-http')
    return undefined
  }
  const { origin, protocol } = new URL(`${scheme}://${authority}`)
  if (authority.includes('@')) rejectTarget('it holds user information; allowed: an address without it')
  if (/[?#]/.test(rest)) {
    rejectTarget('it holds a query or a fragment; allowed: an address without them')
    return undefined
  }
  if (protocol === 'http:' && !isPlainHttp && !isLoopback(origin)) {
    rejectTarget('plain http would send tokens over the network unencrypted; allowed: https, or the option plain-http')
  }
  const pattern = parsePatternText(rest === '' ? '/' : rest, rejectTarget)
  return pattern && { origin, pattern }
}

interface Options {
  readonly token: TokenName
  readonly timeoutSeconds: number | undefined
  readonly isPlainHttp: boolean
}

function parseOptions(texts: readonly string[], reject: (problem: string) => void): Options {
  const given = new Map<string, string>()
  for (const text of texts) {
    const [name = '', value] = text.split('=')
    const isKnown = OPTIONS.get(name)?.test(text) ?? false
    if (!isKnown) {
      reject(`${quote(text)} is not an option; allowed: token=internal, token=public, timeout=SECONDS, plain-http`)
    } else if (given.has(name)) reject(`the option ${name} is given twice; allowed: once`)
    given.set(name, value ?? '')
  }
  const timeout = given.get('timeout')
  const timeoutSeconds = timeout === undefined ? undefined : Number(timeout)
  if (timeoutSeconds !== undefined && !(timeoutSeconds >= 1 && timeoutSeconds <= longestTimeoutSeconds)) {
    reject(`timeout=${timeout} is out of range; allowed: 1 to ${longestTimeoutSeconds} seconds`)
  }
  return {
    token: given.get('token') === 'public' ? 'public' : 'internal',
    timeoutSeconds,
    isPlainHttp: given.has('plain-http')
  }
}

const OPTIONS = new Map([
  ['token', /^token=(internal|public)$/],
  ['timeout', /^timeout=\d{1,9}$/],
  ['plain-http', /^plain-http$/]
])

function countWildcards({ segments }: PathPattern): number {
  return segments.filter(segment => segment === '*').length
}

function isHidden({ methods, path }: ProxyRule, earlier: readonly ProxyRule[]): boolean {
  return methods.every(method => earlier.some(rule => rule.methods.includes(method) && coversPattern(rule.path, path)))
}
