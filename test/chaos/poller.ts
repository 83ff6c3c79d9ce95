// A page that asks at regular intervals, one request at a time, and waits as long as it is told to.
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from '../helpers/browser.js'

export interface Answer {
  readonly at: number
  /** 0: the connection ended without an answer. */
  readonly status: number
  readonly durationMs: number
  readonly retryAfter: string | undefined
}

export interface PollOptions {
  readonly path: string
  readonly everyMs: number
  readonly hasEnded: () => boolean
}

export async function poll(browser: Browser, options: PollOptions): Promise<Answer[]> {
  const { path, everyMs, hasEnded } = options
  const answers: Answer[] = []
  // Not all in step.
  await pause(Math.random() * everyMs)
  while (!hasEnded()) {
    const answer = await ask(browser, path)
    answers.push(answer)
    const { status, retryAfter } = answer
    await pause(status === 503 && retryAfter !== undefined ? Number(retryAfter) * 1000 : everyMs)
  }
  return answers
}

/** Never rejects: what was not answered is for the scenario to count. */
export async function ask(browser: Browser, path: string): Promise<Answer> {
  const at = performance.now()
  const response = await browser.fetch(path).catch(() => undefined)
  return {
    at,
    status: response?.statusCode ?? 0,
    durationMs: performance.now() - at,
    retryAfter: response?.headers['retry-after']
  }
}
