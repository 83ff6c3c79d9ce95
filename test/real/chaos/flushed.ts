// Somebody deletes all data in Redis (FLUSHALL) while a process waits for the provider's answer to a refresh. The
// connections stay open, so only the next script can notice the loss.
import { setTimeout as pause } from 'node:timers/promises'
import { fine } from './calls.js'
import { createGate } from './gate.js'
import type { Report } from './report.js'
import type { Mode } from './stage.js'
import { trial } from './trial.js'

// Long enough for the other processes to get a lock, if anything allowed it.
const BUSY_MS = 6000

export function flushed(report: Report, { mode }: { readonly mode: Mode }): Promise<void> {
  const failure = 'FLUSHALL while the provider works on a refresh'
  return trial(report, { failure, mode, logins: 10, processes: 3 }, async ({ stage, logins }) => {
    const gate = createGate()
    stage.provider.follow(gate.behaviour)
    const asked = [logins.askEach(0)]
    await gate.arrived(logins.all.length)
    await stage.redis?.admin.flushall()
    stage.provider.follow(fine.answers)
    asked.push(logins.askEach(1), logins.askEach(2))
    await pause(BUSY_MS)
    gate.open()
    await Promise.all(asked)
    const reuses = stage.provider.idp.reuses.length
    report.check('no token was used twice', reuses === 0, String(reuses))
  })
}
