// The owner of a refresh is the process that has the session's lease and calls the provider. It fails, or Redis loses the
// lease, while the provider works and requests of the session wait in other processes.
import { setTimeout as pause } from 'node:timers/promises'
import { type Play, pairs } from '../suite.js'
import { createGate, fine, isSecondStep } from './calls.js'
import type { Options } from './stage.js'
import { spread } from './tally.js'
import { type Trial, type TrialOptions, trial } from './trial.js'

const REQUESTS = 40
/** Requests wait about 5 s for a lease, on a busy machine longer. The lease of a killed owner would end only after 65 s. */
const MAX_WAIT_MS = 20_000

/** The owner is killed with SIGKILL before the provider has spent the token. Only dual mode has a second call. */
export function killedOwner({ modes }: Options): Play[] {
  const variants = [...modes.map(mode => ({ mode, step: 'first' })), { mode: 'dual', step: 'second' }] as const
  return variants.map(({ mode, step }) => {
    const failure = `kill -9 of the owner in the ${step} call`
    return trial({ failure, mode, logins: 1, processes: 4, timeLimitMs: 2000 }, async ({ report, stage, logins }) => {
      const { provider, fleet } = stage
      const gate = createGate({ spendsFirst: false })
      provider.follow(call => (step === 'first' || isSecondStep(call) ? gate.behaviour : fine.answers)(call))
      const browser = logins.all[0]?.browser ?? stage.newBrowser()
      const asked = Array.from({ length: REQUESTS }, () => logins.ask(browser))
      await gate.arrived(1)
      const owner = Number(gate.callers[0]?.split('.')[0])
      await pause(300)
      provider.follow(fine.answers)
      await fleet.kill(owner)
      gate.open()
      const { longest } = spread((await Promise.all(asked)).map(({ durationMs }) => durationMs))
      report.check('no request waits longer than for a lease', longest <= MAX_WAIT_MS, `${longest} ms`)
      await fleet.start(owner)
    })
  })
}

/** The owner is stopped, as a VM can be, while the provider's response arrives. */
export function stoppedOwner({ modes, full }: Options): Play[] {
  return pairs(modes, full ? [6, 30, 60] : [6, 30], (mode, seconds) => {
    const failure = `The owner of a refresh is stopped for ${seconds} s`
    return ownerTrial(
      { failure, mode, logins: full || seconds < 10 ? 10 : 4 },
      async ({ stage, respond, askOthers }) => {
        const owner = stage.fleet.inSlot(0)
        owner.pause()
        respond()
        askOthers()
        await pause(seconds * 1000)
        owner.resume()
      }
    )
  })
}

const cuts = { cut: 'connections break', hold: 'connections stay open without traffic' } as const
const CUT_MS = 4000

/** For a while the owner cannot reach Redis, and the other processes can. */
export function disconnectedOwner({ modes }: Options): Play[] {
  return pairs(modes, Object.keys(cuts) as (keyof typeof cuts)[], (mode, kind) => {
    const failure = `The owner is cut off from Redis for ${CUT_MS / 1000} s, ${cuts[kind]}`
    const options = { failure, mode, logins: 8, hasRedisProxies: true }
    return ownerTrial(options, async ({ stage, respond, askOthers }) => {
      const [proxy] = stage.redisProxies
      proxy?.[kind]()
      askOthers()
      await pause(500)
      respond()
      await pause(CUT_MS - 500)
      proxy?.mend()
    })
  })
}

// Long enough for the other processes to acquire a lease, if anything allowed it.
const BUSY_MS = 6000

/** FLUSHALL deletes all data in Redis. The connections stay open, so only the next script can notice the loss. */
export function flushedRedis({ modes }: Options): Play[] {
  return modes.map(mode =>
    ownerTrial(
      { failure: 'FLUSHALL while the provider works on a refresh', mode, logins: 10 },
      async ({ stage, respond, askOthers }) => {
        await stage.redis?.admin.flushall()
        askOthers()
        await pause(BUSY_MS)
        respond()
      }
    )
  )
}

interface OwnerTrial extends Trial {
  /** Lets the provider send its responses to the owner. */
  respond(): void
  /** Requests the tokens of every login from the other processes. */
  askOthers(): void
}

/** The process in slot 0 owns a refresh of each login, and the provider has spent the tokens and not responded yet. */
function ownerTrial(options: TrialOptions, fault: (trial: OwnerTrial) => Promise<void>): Play {
  return trial({ processes: 3, ...options }, async started => {
    const { report, stage, logins } = started
    const gate = createGate()
    stage.provider.follow(gate.behaviour)
    const asked = [logins.askEach(0)]
    await gate.arrived(logins.all.length)
    stage.provider.follow(fine.answers)
    const askOthers = () => void asked.push(logins.askEach(1), logins.askEach(2))
    await fault({ ...started, respond: gate.open, askOthers })
    await Promise.all(asked)
    const reuses = stage.provider.idp.reuses.length
    report.check('no token was used twice', reuses === 0, String(reuses))
  })
}
