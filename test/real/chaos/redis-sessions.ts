// The sessions are in Redis (`session.store: redis`). Redis does not answer for some seconds, and then every process is
// replaced, so that Redis has the only copy of each session.
import { setTimeout as pause } from 'node:timers/promises'
import type { Report } from './report.js'
import type { Mode } from './stage.js'
import { countEach } from './tally.js'
import { trial } from './trial.js'

const SILENT_SECONDS = 4
const EVERY_MS = 500
const LARGEST_COOKIE_HEADER = 300
const PROCESSES = 2

export function redisSessions(report: Report, { mode }: { readonly mode: Mode }): Promise<void> {
  const failure = `Sessions in Redis: Redis is silent for ${SILENT_SECONDS} s, and all processes are replaced`
  const environment = () => ({ PLATFORM_AUTH_SESSION_STORE: 'redis' })
  return trial(report, { failure, mode, logins: 20, processes: PROCESSES, environment }, async ({ stage, logins }) => {
    const { redis, fleet } = stage
    if (!redis) throw new Error('This scenario needs Redis.')
    const headers = logins.all.map(({ browser }) => browser.cookies.all().map(({ name, value }) => `${name}=${value}`))
    const longest = Math.max(...headers.map(pairs => `Cookie: ${pairs.join('; ')}`.length))
    report.check('the Cookie header is short', longest < LARGEST_COOKIE_HEADER, `${longest} bytes`)

    redis.pause()
    const answers: string[] = []
    const end = performance.now() + SILENT_SECONDS * 1000
    while (performance.now() < end) {
      const asked = await logins.askEach()
      answers.push(...asked.map(({ status }) => String(status)))
      await pause(EVERY_MS)
    }
    redis.resume()
    const others = answers.filter(status => status !== '503')
    report.check('while Redis is silent every answer is 503', others.length === 0, countEach(answers))

    // Each process must not have a token request under way when it is killed.
    await pause(2 * EVERY_MS)
    for (const { name, slot } of [...fleet.replicas]) {
      await fleet.kill(name)
      await fleet.start(slot)
    }
    return { remark: `${answers.length} requests while Redis was silent, Cookie header of ${longest} bytes` }
  })
}
