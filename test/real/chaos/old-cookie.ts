// A browser comes back with an outdated session cookie, for example from a backup or after a crash, while another browser has
// used the session for several refreshes. The provider would end the login if it got the old refresh token.
import { setTimeout as pause } from 'node:timers/promises'
import { openCallback, startLogin } from '../../helpers/server.js'
import { signInAll } from './logins.js'
import type { Report } from './report.js'
import type { Mode } from './stage.js'
import { countEach } from './tally.js'
import { trial } from './trial.js'

const LIFETIME_SECONDS = 2
const REFRESHES = 3
const LEAVING = 4

export interface OldCookieOptions {
  readonly mode: Mode
  readonly processes: number
}

export function oldCookie(report: Report, { mode, processes }: OldCookieOptions): Promise<void> {
  const where = processes > 1 ? `${processes} processes with Redis` : 'one process'
  const failure = `An old cookie is used after ${REFRESHES} refreshes, ${where}`
  const options = { failure, mode, logins: 8, processes, withRedis: processes > 1 }
  return trial(report, options, async ({ stage, logins }) => {
    const { provider } = stage
    const leaving = await signInAll(stage, mode, LEAVING)
    const all = [...logins.all, ...leaving.all].map(({ browser }) => browser)
    const copies = all.map(browser => browser.clone())
    for (let n = 0; n < REFRESHES; n++) {
      await pause(LIFETIME_SECONDS * 1000 + 100)
      provider.idp.settings.accessTokenLifetimeSeconds = n === REFRESHES - 1 ? 60 : LIFETIME_SECONDS
      await Promise.all(all.map(browser => logins.ask(browser)))
    }

    const calls = provider.refreshCalls
    const answers: number[] = []
    for (let slot = 0; slot < processes; slot++) {
      const asked = await Promise.all(copies.map(copy => logins.ask(copy, slot)))
      answers.push(...asked.map(({ status }) => status))
    }
    const sent = provider.refreshCalls - calls
    report.check('the provider gets no old refresh token', sent === 0, `${sent} requests`)
    report.check(
      'every outdated cookie continues with the newest tokens',
      answers.every(status => status === 200),
      countEach(answers.map(String))
    )
    const newer = await Promise.all(all.map(browser => logins.ask(browser)))
    const refused = newer.filter(({ status }) => status !== 200).length
    report.check('the browsers with the newer cookies stay signed in', refused === 0, `${refused} did not`)

    // The person signs in again in the browser with the old cookie.
    const again = copies.slice(logins.all.length)
    for (const copy of again) await openCallback(copy, await startLogin(copy))
    const ended = await Promise.all(leaving.all.map(({ browser }) => logins.ask(browser)))
    const kept = ended.filter(({ status }) => status !== 401).length
    report.check('a new login in the old browser ends the other copy', kept === 0, `${kept} did not end`)
    const fresh = await Promise.all(again.map(copy => logins.ask(copy)))
    const unserved = fresh.filter(({ status }) => status !== 200).length
    report.check('the new login is served', unserved === 0, `${unserved} were not`)
    return { remark: `${answers.length} tries with old cookies` }
  })
}
