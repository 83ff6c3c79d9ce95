import type { Logger } from 'pino'
import type { RedisClient, RedisCommands, RedisEvents } from './redis-client.js'

/**
 * Whether Redis can be used now, decided in one place, so that a Redis in trouble costs each request next to nothing:
 * - `unsure`: the connection is being made, or broke just now; commands wait for it, for a moment
 * - `up`: commands are sent, and each is bounded
 * - `away`: commands are not even tried; Redis is asked in the background until it does again what we need of it
 */
export type LinkState = 'unsure' | 'up' | 'away' | 'closed'

export interface RedisLink {
  /** What Redis answered, or undefined when it is away: then this process is on its own. Never rejects. */
  ask<T>(command: (commands: RedisCommands) => Promise<T>): Promise<T | undefined>
  state(): LinkState
  /** Whether Redis came back less than `ms` ago; not having been away, it did not come back. */
  isBackSince(ms: number): boolean
  close(): Promise<void>
}

export interface RedisLinkParts {
  readonly open: (events: Pick<RedisEvents, 'onReady' | 'onLost' | 'onTrouble'>) => Promise<RedisClient>
  /** Something that takes writing, as the real commands do. */
  readonly probe: (commands: RedisCommands) => Promise<unknown>
  /** Called the moment commands are sent again. */
  readonly onUp: () => void
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly commandMs: number
  readonly startMs: number
  /** How often it is seen whether Redis still does what is needed, even if nobody asks for it. */
  readonly checkMs: number
}

const PROBE_UNSURE_MS = 25
const PROBE_AWAY_MS = 500

export function createRedisLink({ open, probe, onUp, log, commandMs, startMs, checkMs }: RedisLinkParts): RedisLink {
  let state: LinkState = 'unsure'
  let client: RedisClient | undefined
  let isProbing = false
  let probeTimer: NodeJS.Timeout | undefined
  let patience: NodeJS.Timeout | undefined
  let decided = () => {}
  let decision: Promise<void>
  let trouble: Error | undefined
  let awaySince: number | undefined
  let backSince = Number.NEGATIVE_INFINITY

  function beUnsure(ms: number) {
    state = 'unsure'
    decision = new Promise(resolve => {
      decided = resolve
    })
    patience = setTimeout(() => goAway(trouble ? reasonOf(trouble) : 'no connection'), ms)
    patience.unref()
    scheduleProbe()
  }

  function decide(next: LinkState) {
    clearTimeout(patience)
    state = next
    decided()
  }

  function goAway(reason: string) {
    if (state === 'away' || state === 'closed') return
    decide('away')
    awaySince = performance.now()
    log.warn({ event: 'redis_away', reason }, 'Redis is away: until it is back each process coordinates on its own')
    scheduleProbe()
  }

  function comeUp() {
    if (state === 'up' || state === 'closed') return
    decide('up')
    trouble = undefined
    if (awaySince !== undefined) {
      backSince = performance.now()
      log.info({ event: 'redis_back', away_ms: Math.round(backSince - awaySince) }, 'Redis is back')
      awaySince = undefined
    }
    onUp()
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
        await within(commandMs, probe(client.commands))
        comeUp()
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
  const checking = setInterval(() => ask(probe), checkMs)
  checking.unref()

  return {
    ask,
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

class TooLateError extends Error {}

/** Rejects with TooLateError unless `promise` settles in time. */
export function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    // After a pause of this process the answer may lie in the socket unread; what is there by now is read first.
    const timer = setTimeout(() => setImmediate(() => reject(new TooLateError())), ms)
    promise.then(
      value => {
        clearTimeout(timer)
        resolve(value)
      },
      error => {
        clearTimeout(timer)
        reject(error)
      }
    )
  })
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
