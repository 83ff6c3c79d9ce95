// The primary Redis dies, and a replica without the last writes is promoted. The process that made these writes
// reconnects later than the other process, so it cannot repeat them at once.
import { setTimeout as pause } from 'node:timers/promises'
import { eventually } from '../../helpers/eventually.js'
import { startRedis } from '../../helpers/redis-server.js'
import { fine } from './calls.js'
import { createGate } from './gate.js'
import type { Report } from './report.js'
import type { Mode } from './stage.js'
import { startTcpProxy } from './tcp-proxy.js'
import { trial } from './trial.js'

export interface PromotionOptions {
  readonly mode: Mode
  /** The time during which the servers cannot reach Redis. */
  readonly absenceMs: number
}

const REPLICATED_MS = 500
const APART_MS = 300

export function promotion(report: Report, { mode, absenceMs }: PromotionOptions): Promise<void> {
  const failure = `A Redis replica without the last writes is promoted, reachable after ${absenceMs} ms`
  const options = { failure, mode, logins: 30, hasRedisProxies: true, waitMs: 0 }
  return trial(report, options, async ({ scope, stage, logins }) => {
    const primary = stage.redis
    if (!primary) throw new Error('This scenario needs Redis.')
    const replication = await startTcpProxy(scope, primary.port)
    const replica = await startRedis(scope)
    await replica.admin.replicaof('127.0.0.1', replication.port)
    await eventually(async () => /master_link_status:up/.test(await replica.admin.info('replication')))
    await pause(2100)

    // A third of the sessions is refreshed before replication stops, a third afterwards, and a third is still being
    // refreshed when the primary dies.
    const browsers = logins.all.map(({ browser }) => browser)
    const oldTabs = browsers.map(browser => browser.clone())
    const third = browsers.length / 3
    const refresh = (group: number) =>
      Promise.all(browsers.slice(group * third, (group + 1) * third).map(browser => logins.ask(browser, 0)))
    await refresh(0)
    await pause(REPLICATED_MS)
    replication.hold()
    await refresh(1)
    const gate = createGate()
    stage.provider.follow(gate.behaviour)
    const last = refresh(2)
    await gate.arrived(third)
    stage.provider.follow(fine.answers)

    replication.cut()
    for (const proxy of stage.redisProxies) proxy.cut()
    await replica.admin.replicaof('NO', 'ONE')
    await primary.kill()
    const late = Promise.all(oldTabs.map(tab => logins.ask(tab, 1)))
    await pause(absenceMs)
    for (const proxy of [...stage.redisProxies].reverse()) {
      proxy.connectTo(replica.port)
      proxy.mend()
      await pause(APART_MS)
    }
    await pause(1000)
    gate.open()
    await Promise.all([last, late])
  })
}
