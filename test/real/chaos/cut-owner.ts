// The owner of a refresh is the process that holds the session's lock and calls the provider. For a while it cannot
// reach Redis, and the other processes can.
import { setTimeout as pause } from 'node:timers/promises'
import { fine } from './calls.js'
import { createGate } from './gate.js'
import type { Report } from './report.js'
import type { Mode } from './stage.js'
import { trial } from './trial.js'

/** `cut`: its connections break. `hold`: its connections stay open, but no bytes pass. */
export type CutKind = 'cut' | 'hold'

const kinds: Readonly<Record<CutKind, string>> = {
  cut: 'connections break',
  hold: 'connections stay open without traffic'
}

export interface CutOwnerOptions {
  readonly mode: Mode
  readonly kind: CutKind
  readonly seconds: number
}

export function cutOwner(report: Report, { mode, kind, seconds }: CutOwnerOptions): Promise<void> {
  const failure = `The owner is cut off from Redis for ${seconds} s, ${kinds[kind]}`
  const options = { failure, mode, logins: 8, processes: 3, hasRedisProxies: true }
  return trial(report, options, async ({ stage, logins }) => {
    const gate = createGate()
    stage.provider.follow(gate.behaviour)
    const asked = [logins.askEach(0)]
    await gate.arrived(logins.all.length)
    const [proxy] = stage.redisProxies
    proxy?.[kind]()
    stage.provider.follow(fine.answers)
    asked.push(logins.askEach(1), logins.askEach(2))
    await pause(500)
    gate.open()
    await pause(seconds * 1000 - 500)
    proxy?.mend()
    await Promise.all(asked)
  })
}
