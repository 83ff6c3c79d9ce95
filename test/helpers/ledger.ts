// What a run said, and what it must not have said: everything is searched for in every byte sent and every log line written.
import type { Browser, BrowserResponse } from './browser.js'
import { findSecrets } from './byte-recorder.js'

/** What may stand in no byte that was sent and in no log line, and what may stand in certain answers alone. */
export interface Confidential {
  readonly nowhere: readonly string[]
  /** Only in the bodies of `/api/auth/token`. */
  readonly publicTokens: readonly string[]
  /** Only in the bodies of `/api/auth/profile`. */
  readonly names: readonly string[]
}

export interface Said {
  readonly bytes: readonly Buffer[]
  readonly logLines: readonly string[]
  readonly answers: readonly BrowserResponse[]
}

/** One line for each thing that was said in a place where it must not be; it shows no more of it than its beginning. */
export function findLeaks(
  { bytes, logLines, answers }: Said,
  { nowhere, publicTokens, names }: Confidential
): string[] {
  const logs = [Buffer.from(logLines.join(''))]
  const found = (where: string, haystacks: readonly Buffer[], secrets: readonly string[]) =>
    findSecrets(haystacks, secrets).map(({ secret, form }) => `${secret} in ${where}, ${form}`)
  return [
    ...found('an answer', bytes, nowhere),
    ...found('the log', logs, nowhere),
    ...found('the log', logs, [...publicTokens, ...names]),
    ...found('the log', logs, [...statesOf(answers), ...cookieValuesOf(answers)]),
    ...strays(bytes, bodiesOf(answers, '/api/auth/token'), publicTokens),
    ...strays(bytes, bodiesOf(answers, '/api/auth/profile'), names)
  ]
}

/** The same browser, with every answer noted. */
export function watched(browser: Browser, answers: BrowserResponse[]): Browser {
  const note = async (asked: Promise<BrowserResponse>) => {
    const answer = await asked
    answers.push(...answer.hops)
    return answer
  }
  return {
    ...browser,
    get: (...parameters) => note(browser.get(...parameters)),
    request: (...parameters) => note(browser.request(...parameters)),
    navigate: (...parameters) => note(browser.navigate(...parameters)),
    fetch: (...parameters) => note(browser.fetch(...parameters)),
    clone: () => watched(browser.clone(), answers)
  }
}

// Occurrences beyond those in the bodies that may hold them. The end of a long token tells it from any other.
function strays(bytes: readonly Buffer[], allowed: readonly Buffer[], texts: readonly string[]): string[] {
  return [...new Set(texts)].flatMap(text => {
    const end = text.slice(-32)
    const stray = count(bytes, end) - count(allowed, end)
    return stray === 0 ? [] : [`${text.slice(0, 8)}… in ${stray} answers of another kind`]
  })
}

function count(haystacks: readonly Buffer[], text: string): number {
  return haystacks.reduce((sum, bytes) => sum + bytes.toString('latin1').split(text).length - 1, 0)
}

function bodiesOf(answers: readonly BrowserResponse[], path: string): Buffer[] {
  return answers.filter(({ url, statusCode }) => url.pathname === path && statusCode === 200).map(({ body }) => body)
}

function statesOf(answers: readonly BrowserResponse[]): string[] {
  return answers.flatMap(({ headers: { location } }) => {
    const { searchParams } = new URL(location ?? '/', 'http://none')
    return ['state', 'nonce'].flatMap(name => searchParams.getAll(name))
  })
}

// A login cookie is its random part and, after a login, the time of it.
function cookieValuesOf(answers: readonly BrowserResponse[]): string[] {
  return answers
    .flatMap(({ setCookies }) => setCookies.map(({ value }) => value))
    .flatMap(value => [value, value.split('.')[0] ?? ''])
    .filter(value => value.length >= 8)
}
