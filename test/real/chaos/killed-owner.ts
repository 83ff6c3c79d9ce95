// The owner of a refresh is the process that holds the session's lock and calls the provider. It is killed with SIGKILL,
// while requests with the session wait in other processes.
import { setTimeout as pause } from 'node:timers/promises'
import { type Behaviour, createHold, fine, isSecondStep } from './calls.js'
import type { Report } from './report.js'
import type { Mode } from './stage.js'
import { spread } from './tally.js'
import { trial } from './trial.js'

const PROCESSES = 4
const REQUESTS = 40
/** Requests wait about 5 s for a lock. Busy processes need longer. */
const MAX_WAIT_MS = 7500

export interface KilledOwnerOptions {
  readonly mode: Mode
  /** The call of the refresh in which the process is killed. Only dual mode has a second call. */
  readonly step: 'first' | 'second'
}

export function killedOwner(report: Report, { mode, step }: KilledOwnerOptions): Promise<void> {
  const failure = `kill -9 of the owner in the ${step} call`
  const options = { failure, mode, logins: 1, processes: PROCESSES, timeLimitMs: 2000 }
  return trial(report, options, async ({ stage, logins }) => {
    const hold = createHold()
    stage.provider.follow(step === 'first' ? hold.behaviour : holdSecond(hold.behaviour))
    const browser = logins.all[0]?.browser ?? stage.newBrowser()
    const asked = Array.from({ length: REQUESTS }, () => logins.ask(browser))
    const owner = await hold.caller
    await pause(300)
    stage.provider.follow(fine.answers)
    await stage.fleet.kill(owner)
    hold.release()
    const { longest } = spread((await Promise.all(asked)).map(({ durationMs }) => durationMs))
    report.check('no request waits longer than for a lock', longest <= MAX_WAIT_MS, `${longest} ms`)
    await stage.fleet.start(Number(owner.split('.')[0]))
  })
}

function holdSecond(behaviour: Behaviour): Behaviour {
  return call => (isSecondStep(call) ? behaviour(call) : fine.answers(call))
}
