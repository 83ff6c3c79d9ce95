// The session secret is changed on one replica first. Until the other replica has the new secret too, it cannot decrypt
// the refresh results of the first one.
import { setTimeout as pause } from 'node:timers/promises'
import { fine } from './calls.js'
import { SESSION_SECRET } from './fleet.js'
import { createGate } from './gate.js'
import type { Report } from './report.js'
import type { Mode, Stage } from './stage.js'
import { trial } from './trial.js'

const NEXT = {
  SERVER_SESSION_SECRET: 'Wk5rB8uZt2GmQ7xYn4Vd9JcHs3LpFe6A',
  SERVER_SESSION_PREVIOUS_SECRETS: SESSION_SECRET
}

export function mixedSecrets(report: Report, { mode }: { readonly mode: Mode }): Promise<void> {
  const changed = new Set<number>()
  const options = {
    failure: 'The session secret is changed on one replica first',
    mode,
    logins: 6,
    environment: (slot: number) => (changed.has(slot) ? NEXT : {})
  }
  return trial(report, options, async ({ stage, logins }) => {
    await change(stage, changed, 0)
    const oldTabs = logins.all.map(({ browser }) => browser.clone())
    const gate = createGate()
    stage.provider.follow(gate.behaviour)
    const first = logins.askEach(0)
    await gate.arrived(logins.all.length)
    stage.provider.follow(fine.answers)
    const second = Promise.all(oldTabs.map(tab => logins.ask(tab, 1)))
    await pause(300)
    gate.open()
    await Promise.all([first, second])
    await Promise.all(oldTabs.map(tab => logins.ask(tab, 1)))
    await change(stage, changed, 1)
  })
}

async function change({ fleet }: Stage, changed: Set<number>, slot: number): Promise<void> {
  const replica = fleet.replicas.find(replica => replica.slot === slot)
  if (replica) await fleet.stop(replica)
  changed.add(slot)
  await fleet.start(slot)
}
