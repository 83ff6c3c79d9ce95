// A page that requests a path at regular intervals, one request at a time, and that waits as long as Retry-After says.
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from '../../helpers/browser.js'

export interface Answer {
  readonly at: number
  /** 0 if the connection ended without a response. */
  readonly status: number
  readonly durationMs: number
  readonly retryAfter: string | undefined
}

/** Longer than any server may take. A server that never responds must not stop the suite. */
const MAX_ANSWER_MS = 30_000

export async function poll(
  browser: Browser,
  { path, everyMs, hasEnded }: { path: string; everyMs: number; hasEnded: () => boolean }
): Promise<Answer[]> {
  const answers: Answer[] = []
  // The pages start at different times.
  await pause(Math.random() * everyMs)
  while (!hasEnded()) {
    const answer = await ask(browser, path)
    answers.push(answer)
    const { status, retryAfter } = answer
    await pause(status === 503 && retryAfter !== undefined ? Number(retryAfter) * 1000 : everyMs)
  }
  return answers
}

/** Never rejects, because scenarios also count the requests without a response. */
export async function ask(browser: Browser, path: string): Promise<Answer> {
  const at = performance.now()
  const signal = AbortSignal.timeout(MAX_ANSWER_MS)
  const response = await browser.fetch(path, { signal }).catch(() => undefined)
  return {
    at,
    status: response?.statusCode ?? 0,
    durationMs: performance.now() - at,
    retryAfter: response?.headers['retry-after']
  }
}
