// The owner of a refresh is the process that holds the session's lock and calls the provider. It is paused, as a VM can
// be, while the provider's answer arrives.
import { setTimeout as pause } from 'node:timers/promises'
import { fine } from './calls.js'
import { createGate } from './gate.js'
import type { Report } from './report.js'
import type { Mode } from './stage.js'
import { trial } from './trial.js'

export interface StalledOwnerOptions {
  readonly mode: Mode
  readonly seconds: number
  readonly logins: number
}

export function stalledOwner(report: Report, { mode, seconds, logins: count }: StalledOwnerOptions): Promise<void> {
  const failure = `The owner of a refresh is paused for ${seconds} s`
  return trial(report, { failure, mode, logins: count, processes: 3 }, async ({ stage, logins }) => {
    const gate = createGate()
    stage.provider.follow(gate.behaviour)
    const asked = [logins.askEach(0)]
    await gate.arrived(logins.all.length)
    const owner = stage.fleet.replicas.find(({ slot }) => slot === 0)
    owner?.pause()
    stage.provider.follow(fine.answers)
    gate.open()
    asked.push(logins.askEach(1), logins.askEach(2))
    await pause(seconds * 1000)
    owner?.resume()
    await Promise.all(asked)
  })
}
