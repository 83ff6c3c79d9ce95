// A page that asks at regular intervals, one request at a time, and waits as long as it is told to.
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from '../helpers/browser.js'

export interface Answer {
  readonly at: number
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
    const at = performance.now()
    const { statusCode: status, headers } = await browser.fetch(path)
    const durationMs = performance.now() - at
    const retryAfter = headers['retry-after']
    answers.push({ at, status, durationMs, retryAfter })
    await pause(status === 503 && retryAfter !== undefined ? Number(retryAfter) * 1000 : everyMs)
  }
  return answers
}
