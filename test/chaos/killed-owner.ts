// `kill -9` of the process that is renewing a session, while the other three have requests waiting for it.
import { setTimeout as pause } from 'node:timers/promises'
import { signIn } from '../helpers/server.js'
import { type Behaviour, createHold, fine } from './calls.js'
import { ask } from './poller.js'
import type { Report } from './report.js'
import { createScope } from './scope.js'
import { type Mode, setStage, tokenPath } from './stage.js'
import { countEach, spread } from './tally.js'

const PROCESSES = 4
const REQUESTS = 40
/** How long a dead process's lock stands, and what four busy processes may need on top. */
const LOCK_MS = 3000
const SLACK_MS = 2000

/** In which of the calls of a renewal the process is killed; the second there is in dual mode only. */
export type Moment = 'first' | 'second'

export interface KilledOwnerOptions {
  readonly seed: number
  readonly mode: Mode
  readonly moment: Moment
}

export async function killedOwner(report: Report, { seed, mode, moment }: KilledOwnerOptions): Promise<void> {
  report.title(`kill -9 of the renewing process in its ${moment} call: ${PROCESSES} processes with Redis, ${mode} mode`)
  const scope = createScope()
  try {
    const stage = await setStage(scope, { seed, mode, processes: PROCESSES, withRedis: true, timeLimitMs: 10_000 })
    const { provider, fleet } = stage
    const { settings } = provider.idp
    settings.accessTokenLifetimeSeconds = 1
    const browser = stage.newBrowser()
    await signIn(browser)
    settings.accessTokenLifetimeSeconds = 3600
    await pause(1100)

    const hold = createHold()
    provider.follow(moment === 'first' ? hold.behaviour : holdSecond(hold.behaviour))
    const path = tokenPath(mode)
    const afterKill: number[] = []
    let killedAt = 0
    const asked = Array.from({ length: REQUESTS }, async () => {
      const { status } = await ask(browser, path)
      afterKill.push(performance.now() - killedAt)
      return status
    })
    const owner = await hold.caller
    await pause(300)
    provider.follow(fine.answers)
    killedAt = performance.now()
    await fleet.kill(owner)
    hold.release()
    const statuses = await Promise.all(asked)
    const { longest } = spread(afterKill)
    const later = await browser.fetch(path)
    report.figures({
      answers: countEach(statuses.map(String)),
      'ms from the kill to the last answer': longest,
      'provider calls': provider.refreshCalls,
      'reuses seen by the provider': provider.idp.reuses.length
    })
    report.check(
      'all are answered with 200',
      statuses.every(status => status === 200)
    )
    report.check(`within the lock's ${LOCK_MS} ms`, longest <= LOCK_MS + SLACK_MS, `${longest} ms`)
    report.check('the login lives on', later.statusCode === 200, String(later.statusCode))
    report.check('no token was used twice', provider.idp.reuses.length === 0)
  } finally {
    await scope.close()
  }
}

function holdSecond(behaviour: Behaviour): Behaviour {
  let calls = 0
  return call => (++calls === 2 ? behaviour(call) : fine.answers(call))
}
