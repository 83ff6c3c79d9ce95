// Redis is full of another application's keys and evicts keys according to its policy.
import { setTimeout as pause } from 'node:timers/promises'
import { logOut } from './copies.js'
import { type EvictionPolicy, fillRedis } from './foreign-keys.js'
import { createGate } from './gate.js'
import { signInAll } from './logins.js'
import type { Report } from './report.js'
import type { Mode } from './stage.js'
import { trial } from './trial.js'

export interface RedisFullOptions {
  readonly mode: Mode
  readonly policy: EvictionPolicy
}

const LEAVING = 5
// The time in which a refresh lock, and then a refresh result, is exposed to eviction.
const EVICTED_MS = 500
const LATE_MS = 1000

export function redisFull(report: Report, { mode, policy }: RedisFullOptions): Promise<void> {
  const failure = `Redis is full, ${policy}`
  const redisArguments = ['--maxmemory-policy', policy]
  return trial(report, { failure, mode, logins: 40, redisArguments }, async ({ stage, logins }) => {
    if (!stage.redis) throw new Error('This scenario needs Redis.')
    stage.provider.idp.settings.accessTokenLifetimeSeconds = 60
    const leaving = await signInAll(stage, mode, LEAVING)
    stage.provider.idp.settings.accessTokenLifetimeSeconds = 2
    const foreign = await fillRedis(stage.redis.admin)

    const copies = await logOut(
      stage,
      leaving,
      leaving.all.map(({ browser }) => browser)
    )
    const gate = createGate()
    stage.provider.follow(gate.behaviour)
    const oldTabs = logins.all.map(({ browser }) => browser.clone())
    const first = logins.askEach(0)
    await pause(EVICTED_MS)
    const second = Promise.all(oldTabs.map(tab => logins.ask(tab, 1)))
    await pause(EVICTED_MS)
    gate.open()
    await Promise.all([first, second])
    await pause(LATE_MS)
    await Promise.all(oldTabs.map(tab => logins.ask(tab, 1)))
    await copies.tryAll()
    const evicted = await foreign.evicted()
    await foreign.stop()

    const { letIn, tries } = copies
    report.figures({ 'keys evicted': evicted, 'cookies of logged-out sessions tried': tries, 'let in': letIn })
    report.check('no copy of a logged-out session is accepted', letIn === 0, String(letIn))
    return { letIn, remark: `${tries} tries with logged-out sessions` }
  })
}
