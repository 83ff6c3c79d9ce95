// The provider rotates the refresh token, but the rest of its answer is invalid.
import { fine } from './calls.js'
import type { Report } from './report.js'
import type { Mode } from './stage.js'
import { trial } from './trial.js'

export const brokenAnswers = {
  'no-token': { name: 'without an access token', members: { access_token: undefined } },
  'textual-lifetime': { name: 'with a textual lifetime', members: { expires_in: 'soon' } }
} as const

export interface BrokenAnswerOptions {
  readonly mode: Mode
  readonly kind: keyof typeof brokenAnswers
}

export function brokenAnswer(report: Report, { mode, kind }: BrokenAnswerOptions): Promise<void> {
  const { name, members } = brokenAnswers[kind]
  const failure = `A 200 answer ${name}, but with a new refresh token`
  const options = { failure, mode, logins: 10, processes: 1, withRedis: false }
  return trial(report, options, async ({ stage, logins }) => {
    stage.provider.follow(({ work, answer }) => {
      const made = work()
      const body = typeof made.body === 'object' ? { ...made.body, ...members } : made.body
      answer({ ...made, ...(body !== undefined && { body }) })
    })
    await logins.askEach()
    stage.provider.follow(fine.answers)
  })
}
