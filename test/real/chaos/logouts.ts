// Redis goes down after some sessions were logged out. No replica may accept copies of their cookies.
import { setTimeout as pause } from 'node:timers/promises'
import { logOut } from './copies.js'
import { signInAll } from './logins.js'
import type { Report } from './report.js'
import { createScope } from './scope.js'
import { type Mode, setStage } from './stage.js'
import { countEach } from './tally.js'

const LOGINS = 8
const ROUNDS = 4
const EVERY_MS = 1000

export async function logouts(report: Report, { mode }: { readonly mode: Mode }): Promise<void> {
  const failure = 'Redis is down, cookies of logged-out sessions'
  report.title(`${failure}: ${LOGINS} logins, ${mode} mode`)
  const scope = createScope()
  try {
    const stage = await setStage(scope, { seed: 1, mode, processes: 3, withRedis: true, timeLimitMs: 10_000 })
    stage.provider.idp.settings.accessTokenLifetimeSeconds = 60
    const logins = await signInAll(stage, mode, LOGINS)
    const copies = await logOut(
      stage,
      logins,
      logins.all.map(({ browser }) => browser)
    )
    await pause(200)
    await stage.redis?.kill()
    for (let round = 0; round < ROUNDS; round++) {
      await copies.tryAll()
      await pause(EVERY_MS)
    }
    await stage.redis?.restart()
    for (let round = 0; round < ROUNDS; round++) {
      await copies.tryAll()
      await pause(EVERY_MS)
    }
    const { letIn, tries } = copies
    const statuses = logins.answers.map(({ status }) => String(status))
    report.figures({ tries, 'let in': letIn, answers: countEach(statuses) })
    report.check('no copy of a logged-out session is accepted', letIn === 0, String(letIn))
    report.row({ failure: `${failure} (${mode})`, logins: LOGINS, lost: 0, letIn, remark: `${tries} tries` })
  } finally {
    await scope.close()
  }
}
