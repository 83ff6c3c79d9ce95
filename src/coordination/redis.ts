/**
 * Coordination between processes that share a Redis. Within this process askers join in memory first, so that Redis
 * hears one of them; what Redis answers is never needed to go on: while it is away, memory alone decides, and what it
 * missed is told it when it is back.
 */
import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import type { Sealer } from '../sealing/keyring.js'
import { type Coordination, CoordinationClosedError, type Once, type Run, type Settled } from './coordination.js'
import { createMemoryCoordination } from './memory.js'
import type { RedisClient, RedisCommands, RedisEvents } from './redis-client.js'
import { createRedisLink } from './redis-link.js'
import { type Begun, createRedisResults, NO_RUN, ORDINARY, PRECIOUS, RUN_LENGTH } from './redis-results.js'
import { createWakeups } from './wakeups.js'
import { within } from './within.js'

export interface RedisCoordinationParts {
  readonly open: (events: RedisEvents) => Promise<RedisClient>
  /** Keeps applications that share a Redis apart. */
  readonly prefix: string
  readonly sealer: Sealer
  readonly now: () => number
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly timing?: Partial<typeof TIMING>
}

const TIMING = {
  /** How soon a dead owner's work is taken over. Far longer than a pause of a living one (it survives two lost extensions). */
  lockMs: 3000,
  extendMs: 1000,
  /** A Redis that takes longer is of no use on the way of every request; much less would mistake a hiccup for an end. */
  commandMs: 500,
  /** To load the client and to shake hands over TLS; only what comes in these first moments may wait for it. */
  startMs: 2000,
  checkMs: 5000,
  /**
   * What must not be done twice waits this long for a Redis that was lost, and so outlives its restart. Only then two
   * processes may renew one session without knowing of each other.
   */
  patienceMs: 5000,
  /** Three times the longest pause between two attempts to connect, since the machine may be busy. */
  settleMs: 1500,
  closeMs: 2000
}
// Not sealed, but authenticated: the run, and whether its result is precious.
const HEAD_LENGTH = RUN_LENGTH + 1
// A process leaves a word under its name, another one each time. While Redis knows the last one, it still has all that this
// process told it before; a Redis that came back from a copy of itself on disk does not. Of a cluster it is one node's word.
const GREET = `
local isKnown = redis.call('GET', KEYS[1]) == ARGV[1]
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return isKnown and 1 or 0`
const GREETED_MS = 86_400_000
// Marks and results are sealed and handed over this many at a time, so that requests get in between.
const RESTORED_AT_ONCE = 200

/** What this process keeps of a piece of work: enough to tell Redis again. */
interface Done<T> extends Once<T> {
  readonly head: string
}

/** What travels, sealed. `isKept` is false when it is only for those who were waiting. */
interface Packed<T> {
  readonly value: T
  readonly isKept: boolean
  /** It is not the end of the work but how far its owner had come. */
  readonly isLeft?: true
}

export function createRedisCoordination(parts: RedisCoordinationParts): Coordination {
  const { open, prefix, sealer, now, log } = parts
  const { lockMs, extendMs, closeMs, ...linkTiming } = { ...TIMING, ...parts.timing }
  const channel = `${prefix}done`
  const results = createRedisResults(prefix, channel, lockMs)
  const name = `${prefix}process:${randomBytes(16).toString('base64url')}`
  const markKey = (key: string) => `${prefix}mark:${key}`

  const local = createMemoryCoordination(now)
  const wakeups = createWakeups()
  const runs = new Map<string, LockedRun>()
  let lastWord = ''

  async function greet(commands: RedisCommands) {
    const word = randomBytes(16).toString('base64url')
    const isKnown = (await commands.eval(GREET, 1, name, lastWord, word, GREETED_MS)) === 1
    lastWord = word
    return isKnown
  }

  const link = createRedisLink({
    open: events => open({ ...events, channel, onMessage: wakeups.wake }),
    probe: greet,
    onUp: tellRedis,
    log,
    ...linkTiming
  })
  const extending = setInterval(extendLocks, extendMs)
  extending.unref()

  interface LockedRun {
    readonly id: string
    /** The run whose kept result would not do. */
    readonly refused: string
    /** What was there could not be read, and is not to be lost for something of less worth. */
    readonly isBlind: boolean
    isLost: boolean
  }

  /** What the work sees of its run. */
  function runOfWork<T>(key: string, run: LockedRun): Run<T> {
    return {
      isAlone: () => run.isLost || link.state() === 'away' || link.isBackSince(lockMs),
      async leave({ value, keepMs }) {
        const text = pack<T>(key, run.id + PRECIOUS, { value, isKept: true, isLeft: true })
        await link.ask(results.leave(key, text, keepMs))
      }
    }
  }

  async function onceAmongAll<T>(
    key: string,
    work: (run: Run<T>) => Promise<Settled<T>>,
    accept: (kept: T) => boolean
  ): Promise<Done<T> & Settled<T>> {
    const id = randomBytes(16).toString('base64url')
    let refused = NO_RUN
    let isUnreadable = false
    let hasWaited = false
    let askPatiently = link.patience()
    for (;;) {
      const sleeper = wakeups.sleeper(key)
      const begun = await askPatiently(results.begin(key, id, refused))
      if (begun?.kind === 'held') {
        // Not asked again before the lock can have ended, even if Redis comes back empty meanwhile: its owner lives.
        hasWaited = true
        await sleeper.sleep(sleepMs(begun))
        // Redis was there and the owner lives: what becomes of either from now on is worth a patience of its own.
        askPatiently = link.patience()
        continue
      }
      sleeper.leave()
      // Whoever still waits at the end would spend a token that no answer can bring to a browser.
      if (begun === undefined && link.state() === 'closed') throw new CoordinationClosedError()
      if (begun?.kind !== 'result') {
        const isLost = begun === undefined || isUnreadable
        return runIt(key, { id, refused, isBlind: isUnreadable, isLost }, work)
      }
      const packed = unpack<T>(key, begun.text)
      const isJoined = hasWaited && !packed?.isLeft
      if (packed && (isJoined || (packed.isKept && accept(packed.value)))) {
        return { value: packed.value, how: isJoined ? 'joined' : 'kept', head: headOf(begun.text), keepMs: 0 }
      }
      // Sealed with a secret that this replica does not know (yet): somebody has the answer, so nobody here may be sure.
      isUnreadable ||= packed === undefined
      refused = runOf(begun.text)
    }
  }

  async function runIt<T>(
    key: string,
    run: LockedRun,
    work: (run: Run<T>) => Promise<Settled<T>>
  ): Promise<Done<T> & Settled<T>> {
    runs.set(key, run)
    try {
      const { value, keepMs, isPrecious = false } = await work(runOfWork(key, run))
      const head = run.id + (isPrecious ? PRECIOUS : ORDINARY)
      const text = pack(key, head, { value, isKept: keepMs > 0 })
      runs.delete(key)
      // Those who wait elsewhere need a moment to fetch what is not kept.
      const ttlMs = keepMs > 0 ? keepMs : 2 * lockMs
      const other = await link.ask(results.finish(key, run.id, run.isBlind ? NO_RUN : run.refused, text, ttlMs))
      const packed = other ? unpack<T>(key, other) : undefined
      if (other && packed)
        return { value: packed.value, how: packed.isLeft ? 'kept' : 'joined', head: headOf(other), keepMs: 0 }
      return { value, how: 'ran', head, keepMs }
    } catch (error) {
      runs.delete(key)
      void link.ask(results.release(key, run.id))
      throw error
    }
  }

  function extendLocks() {
    for (const [key, run] of runs) {
      // Looked up again when it is sent: a lock given back must not be taken once more by a late extension.
      const extend = results.extend(key, run.id, run.refused)
      void link
        .ask(async commands => (runs.get(key) === run ? extend(commands) : true))
        .then(isMine => {
          if (isMine === false) run.isLost = true
        })
    }
  }

  /** Redis is there, perhaps empty: first the locks of work under way, then what it may have missed or lost. */
  async function tellRedis() {
    extendLocks()
    let telling: Promise<unknown>[] = []
    for (const told of restorations()) {
      telling.push(told)
      if (telling.length < RESTORED_AT_ONCE) continue
      await Promise.all(telling)
      telling = []
      if (link.state() !== 'up') return
    }
    await Promise.all(telling)
  }

  /** Seals and sends one each time the next is asked for. */
  function* restorations(): Iterable<Promise<unknown>> {
    for (const [key, value, leftMs] of local.results()) {
      const done = value as Done<unknown>
      const text = pack(key, done.head, { value: done.value, isKept: true })
      yield link.ask(results.restore(key, text, leftMs))
    }
    for (const [key, , leftMs] of local.marks()) yield setMark(key, leftMs)
  }

  function setMark(key: string, ttlMs: number) {
    return link.ask(commands => commands.set(markKey(key), '1', 'PX', Math.max(1, Math.ceil(ttlMs))))
  }

  function pack<T>(key: string, head: string, packed: Packed<T>): string {
    return head + sealer.seal(Buffer.from(JSON.stringify(packed)), `${key} ${head}`)
  }

  /** Undefined for what was not sealed by this deployment for this key by this run; then the work is done again. */
  function unpack<T>(key: string, text: string): Packed<T> | undefined {
    const plaintext = sealer.open(text.slice(HEAD_LENGTH), `${key} ${headOf(text)}`)
    return plaintext && (JSON.parse(plaintext.toString()) as Packed<T>)
  }

  function sleepMs({ leftMs }: Begun & { kind: 'held' }): number {
    return leftMs >= 0 ? leftMs + 1 : lockMs
  }

  return {
    async once<T>(key: string, work: (run: Run<T>) => Promise<Settled<T>>, accept: (kept: T) => boolean = () => true) {
      for (;;) {
        const { value: done, how } = await local.once<Done<T>>(
          key,
          async () => {
            const { keepMs, ...done } = await onceAmongAll(key, work, accept)
            return { value: done, keepMs }
          },
          kept => accept(kept.value)
        )
        if (how === 'ran') return { value: done.value, how: done.how }
        if (how === 'kept' || done.how === 'ran') return { value: done.value, how }
        // Whom this call joined was given what another process had; a kept result each asker looks at for itself.
        if (done.how === 'joined' || accept(done.value)) return { value: done.value, how: done.how }
      }
    },

    async result<T>(key: string) {
      let hasWaited = false
      while (!local.isUnderWay(key)) {
        const sleeper = wakeups.sleeper(key)
        const found = await link.ask(results.look(key))
        if (found?.kind === 'held') {
          hasWaited = true
          await sleeper.sleep(sleepMs(found))
          continue
        }
        sleeper.leave()
        // Away, or back without what it had: then what this process remembers is all there is.
        if (found?.kind !== 'result') break
        const packed = unpack<T>(key, found.text)
        return packed && (packed.isKept || hasWaited) ? packed.value : undefined
      }
      return (await local.result<Done<T>>(key))?.value
    },

    async mark(key, ttlMs) {
      await local.mark(key, ttlMs)
      await setMark(key, ttlMs)
    },

    async isMarked(key) {
      if (await local.isMarked(key)) return true
      const leftMs = await link.ask(commands => commands.pttl(markKey(key)))
      if (leftMs === undefined || leftMs < 0) return false
      await local.mark(key, leftMs)
      return true
    },

    status() {
      const state = link.state()
      return { store: state === 'up' || state === 'unsure' ? 'redis' : 'memory (redis away)' }
    },

    async close() {
      const ends = [...runs.keys()].map(key => local.result(key))
      await within(closeMs, Promise.all(ends)).catch(() => {})
      clearInterval(extending)
      await link.close()
    }
  }
}

function runOf(text: string): string {
  return text.slice(0, RUN_LENGTH)
}

function headOf(text: string): string {
  return text.slice(0, HEAD_LENGTH)
}
