// The provider spends the refresh token at once and answers after the server's time limit.
import { setTimeout as pause } from 'node:timers/promises'
import { type Behaviour, fine, isSecondStep } from './calls.js'
import type { Report } from './report.js'
import type { Mode } from './stage.js'
import { trial } from './trial.js'

export interface LateAnswerOptions {
  readonly mode: Mode
  readonly processes: number
  /** The call of the refresh that is answered late. Only dual mode has a second call. */
  readonly step: 'first' | 'second'
}

const TIME_LIMIT_MS = 2000
const LATE_MS = 1500

export function lateAnswer(report: Report, { mode, processes, step }: LateAnswerOptions): Promise<void> {
  const where = processes > 1 ? `${processes} processes with Redis` : 'one process'
  const failure = `The provider answers the ${step} call ${LATE_MS} ms after the time limit, ${where}`
  const options = { failure, mode, logins: 10, processes, withRedis: processes > 1, timeLimitMs: TIME_LIMIT_MS }
  return trial(report, options, async ({ stage, logins }) => {
    const late: Behaviour = async ({ work, answer }) => {
      const made = work()
      await pause(TIME_LIMIT_MS + LATE_MS)
      answer(made)
    }
    stage.provider.follow(call => (isSecondStep(call) === (step === 'second') ? late(call) : fine.answers(call)))
    await logins.askEach()
  })
}
