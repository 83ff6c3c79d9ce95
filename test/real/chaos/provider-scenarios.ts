// The provider's response to a refresh is broken, late or lost, or its quota is used up.
import { setTimeout as pause } from 'node:timers/promises'
import { type Play, pairs } from '../suite.js'
import { type Behaviour, fine, isSecondStep } from './calls.js'
import { type Options, ORIGIN, tokenPath } from './stage.js'
import { startTcpProxy } from './tcp-proxy.js'
import { trial } from './trial.js'

const breaks = [
  { name: 'without an access token', members: { access_token: undefined } },
  { name: 'with a textual lifetime', members: { expires_in: 'soon' } }
]

/** The provider rotates the refresh token, but the rest of its response is invalid. */
export function brokenResponse({ modes }: Options): Play[] {
  return pairs(modes, breaks, (mode, { name, members }) => {
    const failure = `A 200 response ${name}, but with a new refresh token`
    return trial({ failure, mode, logins: 10, processes: 1, withRedis: false }, async ({ stage, logins }) => {
      stage.provider.follow(({ work, answer }) => {
        const made = work()
        const body = typeof made.body === 'object' ? { ...made.body, ...members } : made.body
        answer({ ...made, ...(body !== undefined && { body }) })
      })
      await logins.askEach()
    })
  })
}

const TIME_LIMIT_MS = 2000
const LATE_MS = 1500

/** The provider spends the refresh token immediately and responds after the server's time limit. */
export function lateResponse({ modes, full }: Options): Play[] {
  const late: Behaviour = async ({ work, answer }) => {
    const made = work()
    await pause(TIME_LIMIT_MS + LATE_MS)
    answer(made)
  }
  const variants = [
    ...modes.flatMap(mode => (full ? [1, 2] : [2]).map(processes => ({ mode, processes, step: 'first' }) as const)),
    { mode: 'dual', processes: 1, step: 'second' } as const
  ]
  return variants.map(({ mode, processes, step }) => {
    const failure = `The provider responds to the ${step} call ${LATE_MS} ms after the time limit, ${where(processes)}`
    const options = { failure, mode, logins: 10, processes, withRedis: processes > 1, timeLimitMs: TIME_LIMIT_MS }
    return trial(options, async ({ stage, logins }) => {
      stage.provider.follow(call => (isSecondStep(call) === (step === 'second') ? late(call) : fine.answers(call)))
      await logins.askEach()
    })
  })
}

/**
 * The server sends the response with the new cookie, but it never reaches the browser, as when a laptop is closed. The
 * user returns with the old cookie later.
 */
export function lostResponse({ modes, full }: Options): Play[] {
  return pairs(modes, [1, 2], (mode, processes) => {
    const failure = `The browser never gets the response and returns later, ${where(processes)}`
    const options = { failure, mode, logins: 10, processes, withRedis: processes > 1 }
    return trial(options, async ({ scope, stage, logins }) => {
      const network = await startTcpProxy(scope, Number(new URL(stage.fleet.inSlot(0).url).port))
      network.swallowAnswers()
      const asked = logins.all.map(({ browser }) => {
        browser.connectTo(ORIGIN, `http://127.0.0.1:${network.port}`)
        return browser.fetch(tokenPath(mode)).catch(() => undefined)
      })
      await pause(full ? 7000 : 3000)
      network.mend()
      await Promise.all(asked)
    })
  })
}

function where(processes: number): string {
  return processes > 1 ? `${processes} processes with Redis` : 'one process'
}

const WINDOWS = 4
const EVERY_MS = 1000
/** The lowest acceptable share of the sessions that the quota allows to be refreshed. */
const LEAST_SHARE = 0.75
const MAX_REFUSED = 2 / 3

/** The provider allows a limited number of calls in each time window, and many more sessions need a refresh. */
export function quota({ full }: Options): Play[] {
  const {
    calls,
    windowMs,
    logins: count
  } = full ? { calls: 100, windowMs: 10_000, logins: 600 } : { calls: 20, windowMs: 3000, logins: 120 }
  const ideal = (WINDOWS * calls) / 2
  const failure = `Quota of ${calls} calls in ${windowMs / 1000} s, ${count} dual sessions due`
  const play = trial({ failure, mode: 'dual', logins: count }, async ({ report, stage, logins, addToRow }) => {
    stage.provider.idp.settings.accessTokenLifetimeSeconds = 300
    const { behaviour, counts } = createQuota(calls, windowMs)
    stage.provider.follow(behaviour)
    const end = performance.now() + WINDOWS * windowMs - 200
    const refreshed = await Promise.all(
      logins.all.map(async ({ browser }) => {
        await pause(Math.random() * EVERY_MS)
        while (performance.now() < end) {
          const { status, retryAfter } = await logins.ask(browser)
          if (status === 200 && performance.now() < end) return true
          if (status === 401) return false
          await pause(Math.min(Number(retryAfter ?? 1) * 1000, Math.max(0, end - performance.now())))
        }
        return false
      })
    )
    const served = refreshed.filter(Boolean).length
    const { refused, asked } = counts
    report.figures({
      [`refreshed after ${WINDOWS} windows`]: served,
      ideal,
      'calls refused': refused,
      'of calls': asked
    })
    report.check('most of the quota is used', served >= LEAST_SHARE * ideal, `${served} of ${ideal} refreshed`)
    report.check('few calls are refused', refused <= asked * MAX_REFUSED, `${refused} of ${asked}`)
    const remark = `${served} refreshed after ${WINDOWS} windows (ideal ${ideal}); ${refused} of ${asked} calls refused`
    addToRow({ remark })
  })
  return [play]
}

function createQuota(allowed: number, windowMs: number) {
  const began = performance.now()
  const counts = { asked: 0, refused: 0 }
  let current = 0
  let used = 0
  const behaviour: Behaviour = ({ exchange, work, answer }) => {
    const elapsed = performance.now() - began
    const index = Math.floor(elapsed / windowMs)
    if (index !== current) used = 0
    current = index
    counts.asked++
    if (used++ < allowed) return answer(work())
    counts.refused++
    const leftMs = (index + 1) * windowMs - elapsed
    const headers = { 'retry-after': String(Math.ceil(leftMs / 1000)) }
    exchange.send({ status: 429, headers, body: { error: 'temporarily_unavailable' } })
  }
  return { behaviour, counts }
}
