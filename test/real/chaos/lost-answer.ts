// The server sends the answer with the new cookie, but it never reaches the browser, as when a laptop is closed. The
// person returns with the old cookie later.
import { setTimeout as pause } from 'node:timers/promises'
import type { Report } from './report.js'
import { type Mode, ORIGIN, tokenPath } from './stage.js'
import { startTcpProxy } from './tcp-proxy.js'
import { trial } from './trial.js'

export interface LostAnswerOptions {
  readonly mode: Mode
  readonly processes: number
  /** The time after which the person returns. */
  readonly laterSeconds: number
}

export function lostAnswer(report: Report, { mode, processes, laterSeconds }: LostAnswerOptions): Promise<void> {
  const where = processes > 1 ? `${processes} processes with Redis` : 'one process'
  const failure = `The browser never gets the answer and returns later, ${where}`
  const options = { failure, mode, logins: 10, processes, withRedis: processes > 1 }
  return trial(report, options, async ({ scope, stage, logins }) => {
    const [first] = stage.fleet.replicas
    const network = await startTcpProxy(scope, Number(new URL(first?.url ?? '').port))
    network.swallowAnswers()
    const asked = logins.all.map(({ browser }) => {
      browser.connectTo(ORIGIN, `http://127.0.0.1:${network.port}`)
      return browser.fetch(tokenPath(mode)).catch(() => undefined)
    })
    await pause(laterSeconds * 1000)
    network.mend()
    await Promise.all(asked)
  })
}
