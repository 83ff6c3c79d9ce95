// Redis is down, and the setting `redisAway: alone` makes processes refresh sessions without it instead of answering
// 503. If each person stays with one process, no login may be lost.
import { setTimeout as pause } from 'node:timers/promises'
import type { Report } from './report.js'
import type { Mode } from './stage.js'
import { trial } from './trial.js'

// Longer than a request waits for Redis.
const BEFORE_MS = 6000

export function redisAwayAlone(report: Report, { mode }: { readonly mode: Mode }): Promise<void> {
  const environment = () => ({ PLATFORM_AUTH_REDIS_AWAY: 'alone' })
  const options = { failure: 'Redis is down, redisAway: alone, sticky sessions', mode, logins: 10, environment }
  return trial(report, options, async ({ stage, logins }) => {
    await stage.redis?.kill()
    await pause(BEFORE_MS)
    const answers = await logins.askEach(0)
    const refused = answers.filter(({ status }) => status !== 200).length
    report.check('sessions are refreshed without Redis', refused === 0, `${refused} were refused`)
    await stage.redis?.restart()
  })
}
