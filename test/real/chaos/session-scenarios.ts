// Sessions are used across a change of the session secret, by a thousand requests in parallel, and with
// `session.store: redis`.
import { setTimeout as pause } from 'node:timers/promises'
import { SESSION_SECRET } from '../../helpers/program.js'
import { commandsRun } from '../../helpers/redis-commands.js'
import type { Play } from '../suite.js'
import { createGate, fine } from './calls.js'
import { signIn } from './logins.js'
import { type Options, type Stage, setStage, tokenPath } from './stage.js'
import { countEach, spread } from './tally.js'
import { trial } from './trial.js'

const NEXT = {
  SERVER_SESSION_SECRET: 'Wk5rB8uZt2GmQ7xYn4Vd9JcHs3LpFe6A',
  SERVER_SESSION_PREVIOUS_SECRETS: SESSION_SECRET
}

/**
 * The session secret is changed on one replica first. Until the other replica has the new secret too, it cannot decrypt
 * the refresh results of the first one.
 */
export function mixedSecrets({ modes }: Options): Play[] {
  return modes.map(mode => {
    const changed = new Set<number>()
    const change = async ({ fleet }: Stage, slot: number) => {
      await fleet.stop(slot)
      changed.add(slot)
      await fleet.start(slot)
    }
    const failure = 'The session secret is changed on one replica first'
    const environment = (slot: number) => (changed.has(slot) ? NEXT : {})
    return trial({ failure, mode, logins: 6, environment }, async ({ stage, logins }) => {
      await change(stage, 0)
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
      await change(stage, 1)
    })
  })
}

const SILENT_SECONDS = 4
const EVERY_MS = 500

/**
 * The sessions are in Redis. Redis does not respond for some seconds, and then every process is replaced, so that Redis
 * has the only copy of each session.
 */
export function redisSessions({ modes }: Options): Play[] {
  const failure = `Sessions in Redis: Redis is silent for ${SILENT_SECONDS} s, and all processes are replaced`
  const environment = () => ({ PLATFORM_AUTH_SESSION_STORE: 'redis' })
  return modes.map(mode =>
    trial({ failure, mode, logins: 20, environment }, async ({ report, stage, logins, addToRow }) => {
      const { redis, fleet } = stage
      redis?.pause()
      const answers: string[] = []
      const end = performance.now() + SILENT_SECONDS * 1000
      while (performance.now() < end) {
        const asked = await logins.askEach()
        answers.push(...asked.map(({ status }) => String(status)))
        await pause(EVERY_MS)
      }
      redis?.resume()
      const others = answers.filter(status => status !== '503')
      report.check('while Redis is silent every response is 503', others.length === 0, countEach(answers))

      // Each process must not have a token request under way when it is killed.
      await pause(2 * EVERY_MS)
      for (const { slot } of fleet.replicas) {
        await fleet.kill(slot)
        await fleet.start(slot)
      }
      addToRow({ remark: `${answers.length} requests while Redis was silent` })
    })
  )
}

const PROCESSES = 4
const REQUESTS = 1000

/** A thousand parallel requests of one session whose access token has just expired reach four processes. */
export function parallelRequests({ modes }: Options): Play[] {
  return modes.map(mode => async (report, scope) => {
    const what = `${REQUESTS} parallel requests on one expired session`
    report.title(`${what}: ${PROCESSES} processes with Redis, ${mode} mode`)
    // At info, only the process that sent the token requests logs a line.
    const environment = () => ({ LOG_LEVEL: 'debug' })
    const stage = await setStage(scope, {
      mode,
      processes: PROCESSES,
      withRedis: true,
      timeLimitMs: 10_000,
      environment
    })
    const { provider, fleet, redis } = stage
    if (!redis) throw new Error('This scenario needs Redis.')
    const { settings } = provider.idp
    settings.accessTokenLifetimeSeconds = 1
    const browser = stage.newBrowser()
    await signIn(browser)
    settings.accessTokenLifetimeSeconds = 3600
    await pause(1100)

    const callsBefore = provider.refreshCalls
    const { scripts: scriptsBefore } = await commandsRun(redis)
    const durations: number[] = []
    const asked = Array.from({ length: REQUESTS }, async () => {
      const started = performance.now()
      const response = await browser.fetch(tokenPath(mode))
      durations.push(performance.now() - started)
      return response
    })
    const responses = await Promise.all(asked)
    const calls = provider.refreshCalls - callsBefore
    const scripts = (await commandsRun(redis)).scripts - scriptsBefore
    const bodies = new Set(responses.map(response => response.text().replace(/"expires_in":\d+/, '')))
    const askers = new Set(
      fleet.lines.filter(({ event }) => event === 'refresh_succeeded').map(({ process }) => process)
    )
    const { median, longest } = spread(durations)
    const others = responses.filter(({ statusCode }) => statusCode !== 200)
    report.figures({
      responses: countEach(responses.map(({ statusCode }) => String(statusCode))),
      'provider calls': calls,
      'Redis scripts': scripts,
      'processes that took part': askers.size,
      'ms median': median,
      longest
    })
    report.check('all responses have status 200', others.length === 0)
    report.check('all responses contain the same token', bodies.size === 1, `${bodies.size} different responses`)
    const expected = mode === 'dual' ? 2 : 1
    report.check(`the provider is called ${expected === 1 ? 'once' : 'twice'}`, calls === expected, String(calls))
    report.check('every process took part', askers.size === PROCESSES, String(askers.size))
    const lost = others.some(({ statusCode }) => statusCode === 401) ? 1 : 0
    const remark = `${calls} provider calls, ${scripts} Redis scripts`
    report.row({ failure: `${what} (${mode})`, logins: 1, lost, remark })
  })
}
