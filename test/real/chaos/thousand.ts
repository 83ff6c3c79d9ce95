// A thousand simultaneous requests with one session whose access token has just expired, spread over four processes.
import { setTimeout as pause } from 'node:timers/promises'
import { signIn } from './logins.js'
import type { Report } from './report.js'
import { createScope } from './scope.js'
import { type Mode, type Stage, setStage, tokenPath } from './stage.js'
import { countEach, spread } from './tally.js'

const PROCESSES = 4
const REQUESTS = 1000

export async function thousandRequests(report: Report, { seed, mode }: { seed: number; mode: Mode }): Promise<void> {
  report.title(`${REQUESTS} parallel requests on one expired session: ${PROCESSES} processes with Redis, ${mode} mode`)
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

    const callsBefore = provider.refreshCalls
    const scriptsBefore = await scriptsOf(stage)
    const path = tokenPath(mode)
    const durations: number[] = []
    const asked = Array.from({ length: REQUESTS }, async () => {
      const started = performance.now()
      const response = await browser.fetch(path)
      durations.push(performance.now() - started)
      return response
    })
    const responses = await Promise.all(asked)
    const calls = provider.refreshCalls - callsBefore
    const scripts = (await scriptsOf(stage)) - scriptsBefore
    const bodies = new Set(responses.map(response => bodyWithoutAge(response.text())))
    const askers = new Set(fleet.lines.filter(({ event }) => event === 'refresh').map(({ process }) => process))
    const { median, longest } = spread(durations)
    report.figures({
      answers: countEach(responses.map(({ statusCode }) => String(statusCode))),
      'provider calls': calls,
      'Redis scripts': scripts,
      'processes that took part': askers.size,
      'ms median': median,
      longest
    })
    report.check(
      'all are answered with 200',
      responses.every(({ statusCode }) => statusCode === 200)
    )
    report.check('all answers contain the same token', bodies.size === 1, `${bodies.size} different answers`)
    const expected = mode === 'dual' ? 2 : 1
    report.check(`the provider is called ${expected === 1 ? 'once' : 'twice'}`, calls === expected, String(calls))
    report.check('every process took part', askers.size === PROCESSES, String(askers.size))
    const refused = responses.filter(({ statusCode }) => statusCode === 401).length
    const failure = `${REQUESTS} parallel requests on one expired session (${mode})`
    report.row({
      failure,
      logins: 1,
      lost: refused > 0 ? 1 : 0,
      remark: `${calls} provider calls, ${scripts} Redis scripts`
    })
  } finally {
    await scope.close()
  }
}

/** Returns the number of scripts that Redis has run. A call with an unknown digest fails and is repeated with the text. */
async function scriptsOf({ redis }: Stage): Promise<number> {
  const stats = (await redis?.admin.info('commandstats')) ?? ''
  const calls = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)(?:,.*failed_calls=(\d+))?/g)]
  return calls.reduce((sum, [, all, failed = 0]) => sum + Number(all) - Number(failed), 0)
}

function bodyWithoutAge(text: string): string {
  return text.replace(/"expires_in":\d+/, '')
}
