// The server sends the answer with the new cookie, but it never reaches the browser, as when a laptop is closed. The
// person returns with the old cookie after keepSeconds, the time for which refresh results are kept.
import { setTimeout as pause } from 'node:timers/promises'
import type { Report } from './report.js'
import { type Mode, ORIGIN, tokenPath } from './stage.js'
import { startTcpProxy } from './tcp-proxy.js'
import { trial } from './trial.js'

export interface LostAnswerOptions {
  readonly mode: Mode
  readonly processes: number
  readonly keepSeconds: number
}

export function lostAnswer(report: Report, { mode, processes, keepSeconds }: LostAnswerOptions): Promise<void> {
  const where = processes > 1 ? `${processes} processes with Redis` : 'one process'
  const failure = `The browser never gets the answer and returns after keepSeconds, ${where}`
  const environment = () => ({ PLATFORM_AUTH_REFRESH_KEEP: String(keepSeconds) })
  const options = { failure, mode, logins: 10, processes, withRedis: processes > 1, environment }
  return trial(report, options, async ({ scope, stage, logins }) => {
    const [first] = stage.fleet.replicas
    const network = await startTcpProxy(scope, Number(new URL(first?.url ?? '').port))
    network.swallowAnswers()
    const asked = logins.all.map(({ browser }) => {
      browser.connectTo(ORIGIN, `http://127.0.0.1:${network.port}`)
      return browser.fetch(tokenPath(mode)).catch(() => undefined)
    })
    await pause((keepSeconds + 2) * 1000)
    network.mend()
    await Promise.all(asked)
  })
}
