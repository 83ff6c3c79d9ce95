import type { Logger } from 'pino'
import type { RedisClient, RedisCommands, RedisEvents } from './redis-client.js'
import { TooLateError, within } from './within.js'

/**
 * Whether Redis can be used now, decided in one place, so that a Redis in trouble costs each request next to nothing:
 * - `unsure`: the connection is being made, or broke just now; commands wait for it, for a moment
 * - `up`: commands are sent, and each is bounded
 * - `away`: commands are not even tried; Redis is asked in the background until it does again what we need of it
 */
export type LinkState = 'unsure' | 'up' | 'away' | 'closed'

/** What Redis answered, or undefined when it is away: then this process is on its own. Never rejects. */
type Ask = <T>(command: (commands: RedisCommands) => Promise<T>) => Promise<T | undefined>

export interface RedisLink {
  /** Soon, whatever Redis does. */
  readonly ask: Ask
  /**
   * To ask before something that must not be done twice, for which an answer soon is worth less: waits for a Redis that
   * was lost just now, and for one that came back without its memory until the other processes have told it what they
   * know. Each call begins a patience of its own, so that a Redis that comes and goes is not waited for without end.
   */
  patience(): Ask
  state(): LinkState
  /** Whether less than `ms` ago Redis came back, from an absence or without its memory. */
  isBackSince(ms: number): boolean
  close(): Promise<void>
}

export interface RedisLinkParts {
  readonly open: (events: Pick<RedisEvents, 'onReady' | 'onLost' | 'onTrouble'>) => Promise<RedisClient>
  /** Something that takes writing, as the real commands do; whether Redis still knew of an earlier one. */
  readonly probe: (commands: RedisCommands) => Promise<boolean>
  /** Called the moment commands are sent again. */
  readonly onUp: () => void
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly commandMs: number
  readonly startMs: number
  /** How often it is seen whether Redis still does what is needed, even if nobody asks for it. */
  readonly checkMs: number
  /** How long after Redis was lost the patient wait for it. */
  readonly patienceMs: number
  /** How long after it came back without its memory: until the slowest process is connected again. */
  readonly settleMs: number
}

const PROBE_UNSURE_MS = 25
const PROBE_AWAY_MS = 500

export function createRedisLink(parts: RedisLinkParts): RedisLink {
  const { open, probe, onUp, log, commandMs, startMs, checkMs, patienceMs, settleMs } = parts
  let state: LinkState = 'unsure'
  let client: RedisClient | undefined
  let isProbing = false
  let probeTimer: NodeJS.Timeout | undefined
  let unsureTimer: NodeJS.Timeout | undefined
  let decided = () => {}
  let decision: Promise<void>
  let trouble: Error | undefined
  let awaySince: number | undefined
  let backSince = Number.NEGATIVE_INFINITY
  let lostAt = performance.now()
  let settledAt = Number.NEGATIVE_INFINITY
  let wasUp = false
  const patients = new Set<() => void>()

  function beUnsure(ms: number) {
    noteLoss()
    state = 'unsure'
    decision = new Promise(resolve => {
      decided = resolve
    })
    unsureTimer = setTimeout(() => goAway(trouble ? reasonOf(trouble) : 'no connection'), ms)
    unsureTimer.unref()
    scheduleProbe()
  }

  function noteLoss() {
    if (state === 'up') lostAt = performance.now()
  }

  function decide(next: LinkState) {
    clearTimeout(unsureTimer)
    state = next
    decided()
    if (next === 'up' || next === 'closed') for (const goOn of patients) goOn()
  }

  function goAway(reason: string) {
    if (state === 'away' || state === 'closed') return
    noteLoss()
    decide('away')
    awaySince = performance.now()
    log.warn({ event: 'redis_away', reason }, 'Redis is away: until it is back each process coordinates on its own')
    scheduleProbe()
  }

  function comeUp(hasMemory: boolean) {
    if (state === 'up' || state === 'closed') return
    // After an absence it may be another Redis, which the last of what the first one knew had not reached.
    if (awaySince !== undefined || (wasUp && !hasMemory)) beStrange()
    wasUp = true
    decide('up')
    trouble = undefined
    if (awaySince !== undefined) {
      log.info({ event: 'redis_back', away_ms: Math.round(performance.now() - awaySince) }, 'Redis is back')
      awaySince = undefined
    }
    onUp()
  }

  /** From now on Redis may lack what it was told, until the other processes have told it again. */
  function beStrange() {
    backSince = performance.now()
    settledAt = backSince + settleMs
  }

  function scheduleProbe() {
    clearTimeout(probeTimer)
    probeTimer = setTimeout(tryAgain, state === 'unsure' ? PROBE_UNSURE_MS : PROBE_AWAY_MS)
    probeTimer.unref()
  }

  function needsProbe(): boolean {
    return state === 'unsure' || state === 'away'
  }

  async function tryAgain() {
    if (isProbing || !needsProbe()) return
    isProbing = true
    try {
      if (client) {
        comeUp(await within(commandMs, probe(client.commands)))
      }
    } catch (error) {
      if (!isConnectionTrouble(error)) goAway(reasonOf(error))
    }
    isProbing = false
    if (needsProbe()) scheduleProbe()
  }

  function lost() {
    if (state === 'up') beUnsure(commandMs)
  }

  function onTrouble(error: Error) {
    trouble = error
  }

  beUnsure(startMs)
  const opening = open({ onReady: tryAgain, onLost: lost, onTrouble }).then(
    opened => {
      client = opened
      void tryAgain()
    },
    error => goAway(reasonOf(error))
  )

  async function ask<T>(command: (commands: RedisCommands) => Promise<T>): Promise<T | undefined> {
    const started = performance.now()
    for (;;) {
      if (state === 'unsure') await decision
      if (state !== 'up' || !client) return undefined
      try {
        return await within(commandMs, command(client.commands))
      } catch (error) {
        // What broke with its connection is sent again on the next one: every command here may run twice.
        const isWorthWaiting = isConnectionTrouble(error) && performance.now() - started < commandMs
        if (isWorthWaiting) lost()
        else goAway(reasonOf(error))
      }
    }
  }

  // A master that became a replica still answers what only reads, out of what it had then.
  const checking = setInterval(async () => {
    const hasMemory = await ask(probe)
    if (hasMemory !== false || state !== 'up') return
    // It was emptied, or another took its place, and the connection knows nothing of it.
    beStrange()
    onUp()
  }, checkMs)
  checking.unref()

  /** How long what must not be done twice should still wait. */
  function unsettledMs(): number {
    if (state === 'closed') return 0
    return (state === 'up' ? settledAt : lostAt + patienceMs) - performance.now()
  }

  /** Less when Redis comes. */
  function waitAtMost(ms: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(goOn, ms)
      function goOn() {
        clearTimeout(timer)
        patients.delete(goOn)
        resolve()
      }
      patients.add(goOn)
    })
  }

  return {
    ask,
    patience() {
      const deadline = performance.now() + patienceMs + settleMs
      const waitMs = () => Math.min(unsettledMs(), deadline - performance.now())
      return async function askPatiently(command) {
        for (;;) {
          for (let ms = waitMs(); ms > 0; ms = waitMs()) await waitAtMost(ms)
          const answer = await ask(command)
          if (answer !== undefined || waitMs() <= 0) return answer
        }
      }
    },
    state: () => state,
    isBackSince: ms => performance.now() - backSince < ms,
    async close() {
      if (state === 'closed') return
      decide('closed')
      clearTimeout(probeTimer)
      clearInterval(checking)
      await opening
      await client?.close()
    }
  }
}

function isConnectionTrouble(error: unknown): boolean {
  return !(error instanceof TooLateError) && (error as Error).name !== 'ReplyError'
}

// The first word alone (READONLY, OOM, WRONGPASS, ECONNREFUSED): what follows it may quote the command, password and all.
export function reasonOf(error: unknown): string {
  if (error instanceof TooLateError) return 'timeout'
  const { name, message, code, lastNodeError } = error as Partial<Record<'name' | 'message', string>> & {
    code?: unknown
    lastNodeError?: unknown
  }
  // A cluster of which no node would do; the last of them says why.
  if (lastNodeError instanceof Error) return reasonOf(lastNodeError)
  if (name === 'ReplyError') return /^[A-Z]+/.exec(message ?? '')?.[0] ?? 'refused'
  return typeof code === 'string' ? code : 'connection lost'
}
