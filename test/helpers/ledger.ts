// Searches every byte that a server sent and every log line that it wrote for confidential texts.
import type { Browser, BrowserResponse } from './browser.js'
import { findSecrets } from './byte-recorder.js'

/** Texts that may appear in no response and no log line, and texts that may appear only in certain responses. */
export interface Confidential {
  readonly nowhere: readonly string[]
  /** May appear only in bodies of `/api/auth/token`. */
  readonly publicTokens: readonly string[]
  /** May appear only in bodies of `/api/auth/profile`. */
  readonly names: readonly string[]
}

interface Output {
  readonly bytes: readonly Buffer[]
  readonly logLines: readonly string[]
  readonly answers: readonly BrowserResponse[]
}

/**
 * Returns one line for each confidential text in a place where it must not appear. The line shows only the first
 * characters of that text.
 */
export function findLeaks(
  { bytes, logLines, answers }: Output,
  { nowhere, publicTokens, names }: Confidential
): string[] {
  const logs = [Buffer.from(logLines.join(''))]
  const found = (where: string, haystacks: readonly Buffer[], secrets: readonly string[]) =>
    findSecrets(haystacks, secrets).map(({ secret, form }) => `${secret} in ${where}, ${form}`)
  return [
    ...found('a response', bytes, nowhere),
    ...found('the log', logs, nowhere),
    ...found('the log', logs, [...publicTokens, ...names]),
    ...found('the log', logs, [...statesOf(answers), ...cookieValuesOf(answers)]),
    ...strays(bytes, bodiesOf(answers, '/api/auth/token'), publicTokens),
    ...strays(bytes, bodiesOf(answers, '/api/auth/profile'), names)
  ]
}

/** Returns a browser that behaves like `browser` and adds every response to `answers`. */
export function recordAnswers(browser: Browser, answers: BrowserResponse[]): Browser {
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
    clone: () => recordAnswers(browser.clone(), answers)
  }
}

// Finds texts that occur more often in all bytes than in the allowed bodies. It searches for the last 32 characters,
// because tokens may begin alike.
function strays(bytes: readonly Buffer[], allowed: readonly Buffer[], texts: readonly string[]): string[] {
  const [everywhere, inAllowed] = [bytes, allowed].map(buffers => Buffer.concat(buffers).toString('latin1')) as [
    string,
    string
  ]
  return [...new Set(texts)].flatMap(text => {
    const end = text.slice(-32)
    const stray = count(everywhere, end) - count(inAllowed, end)
    return stray === 0 ? [] : [`${text.slice(0, 8)}… in ${stray} responses of another kind`]
  })
}

function count(haystack: string, text: string): number {
  return haystack.split(text).length - 1
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

// A login cookie holds a random value and, after a login, a dot and the time of the login. The random value alone is
// confidential too.
function cookieValuesOf(answers: readonly BrowserResponse[]): string[] {
  return answers
    .flatMap(({ setCookies }) => setCookies.map(({ value }) => value))
    .flatMap(value => [value, value.split('.')[0] ?? ''])
    .filter(value => value.length >= 8)
}
