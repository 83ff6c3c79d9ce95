// Sessions with `session.store: redis`.
import { setTimeout as pause } from 'node:timers/promises'
import type { Play } from '../suite.js'
import type { Options } from './stage.js'
import { countEach } from './tally.js'
import { trial } from './trial.js'

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
