/**
 * Cells in Redis. A cell is a Redis hash: the field `e` contains the entry, which is the state of a session, and the field `r`
 * contains the record, which is the session at its newest revision. Both are encrypted, with the name of the Redis key as
 * associated data. An attacker who can write to Redis can therefore delete a cell or restore an older version of it, but cannot
 * forge a cell. Encrypting the same value twice gives different strings, so two equal strings come from the same write.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../base/clock.js'
import type { Sealer } from '../../cookie/keyring.js'
import type { SessionRecord } from '../../cookie/session-record.js'
import { apply, type Cells, type Message, type Snapshot, StoreUnavailableError, type Values } from '../cells.js'
import type { SessionKey } from '../session-types.js'
import type { Cell, Entry } from '../transitions.js'
import type { RedisCommands } from './redis-client.js'
import { MAX_REPLY_BYTES } from './reply-limit.js'

/**
 * Sends one command to Redis and returns its reply. Rejects with StoreUnavailableError.
 * @param name the name of the command, for the metrics and traces
 */
export type SendCommand = <T>(name: string, command: (commands: RedisCommands) => Promise<T>) => Promise<T>

/** Encrypts and decrypts the content of a cell. */
interface Format<Content, Key> {
  /** The name of the key in Redis, without the prefix of the deployment. */
  nameOf(key: Key): string
  lifetimeMs(content: Content): number
  sealEntry(content: Content, name: string): string
  /** Returns undefined if the stored record does not change, and an empty string if it must be removed. */
  sealRecord(content: Content, previous: Content | undefined, name: string, key: Key): string | undefined
  /** Returns undefined if the entry cannot be decrypted. */
  open(entry: string, record: string | undefined, name: string, key: Key): Content | undefined
}

// This string stands for an entry that is too long to be read. It cannot be decrypted, so only a logout replaces such an entry.
const TOO_LONG = 'too long'

/**
 * The compare-and-swap. A full Redis refuses a script only if the first write of the script needs memory. A change that must not
 * fail therefore begins with an HDEL, which needs no memory.
 *
 * ARGV: 1 the expected entry, 2 the new entry, 3 the change of the record (keep, remove or set), 4 the record, 5 the lifetime in
 * milliseconds, 6 the time that the rule used, 7 the channel, 8 the message, 9 whether a full Redis may refuse the change.
 *
 * The script refuses a change if argument 6 differs from the time of Redis by more than 2 seconds. A smaller difference is
 * normal. The command from which the process last learned the time of Redis may have taken up to a second, and this command may
 * also take up to a second.
 */
const SWAP = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local entry = redis.call('HSTRLEN', KEYS[1], 'e') > ${MAX_REPLY_BYTES} and '${TOO_LONG}' or redis.call('HGET', KEYS[1], 'e')
if (entry or '') ~= ARGV[1] or math.abs(now - ARGV[6]) > 2000 then return {0, now, entry} end
if ARGV[9] ~= '1' then redis.call('HDEL', KEYS[1], 'none') end
if ARGV[3] == 'set' then redis.call('HSET', KEYS[1], 'e', ARGV[2], 'r', ARGV[4])
else redis.call('HSET', KEYS[1], 'e', ARGV[2]) end
if ARGV[3] == 'remove' then redis.call('HDEL', KEYS[1], 'r') end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
if ARGV[8] ~= '' then redis.call('PUBLISH', ARGV[7], ARGV[8]) end
return {1, now}`
const SWAP_DIGEST = createHash('sha1').update(SWAP).digest('hex')
const PROBE_LIFETIME_MS = 1000
const PROBE_ATTEMPTS = 3

type SwapReply = readonly [isDone: number, now: number, entry?: string | null]
type SwapArguments = readonly [
  expected: string,
  entry: string,
  change: 'keep' | 'remove' | 'set',
  record: string,
  lifetimeMs: number,
  now: number,
  channel: string,
  message: string,
  mayFail: 0 | 1
]

/**
 * Follows the clock of the store, which all processes share. Each reply contains the current time of the store, read after the
 * command was sent and before the reply arrived. The true difference between the clocks therefore lies between two limits. The
 * remembered difference changes only if it lies outside these limits, so it stays correct even if a suspended process reads a
 * reply late.
 */
export function createStoreClock(clock: Pick<Clock, 'now'>) {
  let offsetMs = 0

  return {
    /**
     * Returns the time of the store, in whole milliseconds since the epoch. While the store is unavailable, the last known
     * difference between the clocks is used.
     */
    now: (): number => Math.round(clock.now() + offsetMs),
    /** Call this function when a command is sent. Call the returned function with the time in the reply. */
    measure(): (time: number) => void {
      const sentAt = clock.now()
      return time => {
        const least = time - clock.now()
        const most = time - sentAt
        if (offsetMs < least - 1 || offsetMs > most + 1) offsetMs = (least + most) / 2
      }
    }
  }
}

/** Runs the script, and learns the time of Redis from each reply. */
export function createSwapScript(clock: Pick<Clock, 'now'>) {
  const time = createStoreClock(clock)

  async function run(commands: RedisCommands, name: string, args: SwapArguments): Promise<SwapReply> {
    const learnTime = time.measure()
    const reply = (await commands.evalsha(SWAP_DIGEST, 1, name, ...args).catch((error: Error) => {
      if (!error.message.startsWith('NOSCRIPT')) throw error
      return commands.eval(SWAP, 1, name, ...args)
    })) as SwapReply
    learnTime(reply[1])
    return reply
  }

  return {
    run,
    now: time.now,
    /** Checks whether Redis accepts writes, and reads its clock. */
    async probe(commands: RedisCommands, name: string): Promise<void> {
      // An attempt is refused if the clocks differ, or if the value of the last probe has not expired yet, or has expired since the
      // last attempt. In this case, try again with the time and the value from the reply.
      let expected = ''
      for (let attempt = 0; attempt < PROBE_ATTEMPTS; attempt++) {
        const args = [expected, 'probe', 'keep', '', PROBE_LIFETIME_MS, time.now(), '', '', 1] as const
        const [isDone, , found] = await run(commands, name, args)
        if (isDone === 1) return
        expected = found ?? ''
      }
      throw new StoreUnavailableError('conflict')
    }
  }
}

type SwapScript = ReturnType<typeof createSwapScript>

interface RedisCellsDependencies {
  readonly send: SendCommand
  readonly script: SwapScript
  /** The prefix of all Redis keys of this deployment. */
  readonly prefix: string
  readonly channel: string
  readonly sealMessage: (message: Message) => string
  /** True if the length of a value must be read before the value. */
  readonly mayBeTooLong: () => boolean
}

export function createRedisCells<Content, Key>(
  { send, script, prefix, channel, sealMessage, mayBeTooLong }: RedisCellsDependencies,
  format: Format<Content, Key>
): Cells<Content, Key> {
  const reads = new Map<string, Promise<Snapshot<Content>>>()

  function snapshotOf(
    entry: string | null | undefined,
    record: string | null | undefined,
    key: Key
  ): Snapshot<Content> {
    if (typeof entry !== 'string') return { version: '', content: undefined }
    const content = format.open(entry, record ?? undefined, format.nameOf(key), key)
    return { version: entry, content, isUnreadable: content === undefined }
  }

  async function readNow(key: Key, isWhole: boolean): Promise<Snapshot<Content>> {
    const name = prefix + format.nameOf(key)
    if (mayBeTooLong()) {
      const fields = isWhole ? ['e', 'r'] : ['e']
      const lengths = await send('HSTRLEN', commands => Promise.all(fields.map(field => commands.hstrlen(name, field))))
      if (lengths.some(length => length > MAX_REPLY_BYTES)) return snapshotOf(TOO_LONG, undefined, key)
    }
    if (!isWhole) return snapshotOf(await send('HGET', commands => commands.hget(name, 'e')), undefined, key)
    const [entry, record] = await send('HMGET', commands => commands.hmget(name, 'e', 'r'))
    return snapshotOf(entry, record, key)
  }

  return {
    now: script.now,
    read(key, isWhole) {
      // Parallel reads share a command. A read joins only a command that has not been sent yet. Otherwise the read could miss a
      // change that was stored before the read began.
      const shared = `${isWhole} ${JSON.stringify(key)}`
      const reading =
        reads.get(shared) ??
        new Promise<void>(resolve => setImmediate(resolve)).then(() => {
          reads.delete(shared)
          return readNow(key, isWhole)
        })
      reads.set(shared, reading)
      return reading
    },
    async swap(key, expected, next, { now, message, mayFail }) {
      const name = format.nameOf(key)
      const entry = format.sealEntry(next, name)
      const record = format.sealRecord(next, expected.content, name, key)
      const change = record === undefined ? 'keep' : record === '' ? 'remove' : 'set'
      const [isDone, , found] = await send('EVALSHA', commands =>
        script.run(commands, prefix + name, [
          String(expected.version),
          entry,
          change,
          record ?? '',
          format.lifetimeMs(next),
          now,
          channel,
          message ? sealMessage(message) : '',
          mayFail ? 1 : 0
        ])
      )
      if (isDone === 1) return { isDone: true, snapshot: { version: entry, content: next } }
      return { isDone: false, snapshot: snapshotOf(found, undefined, key) }
    }
  }
}

/** Creates values. Each of them is the entry of a cell without a record. */
export function createRedisValues<Value>(
  redis: RedisCellsDependencies,
  sealer: Sealer,
  { kind, lifetimeMs }: { readonly kind: string; readonly lifetimeMs: number }
): Values<Value> {
  const cells = createRedisCells<Value, string>(redis, {
    nameOf: key => `${kind}:${key}`,
    lifetimeMs: () => lifetimeMs,
    sealEntry: (value, name) => sealer.seal(Buffer.from(JSON.stringify(value)), name),
    sealRecord: () => undefined,
    open(entry, _record, name) {
      const plaintext = sealer.open(entry, name)
      return plaintext && (JSON.parse(plaintext.toString()) as Value)
    }
  })
  return {
    now: cells.now,
    async read(key) {
      const { content, isUnreadable } = await cells.read(key, false)
      if (isUnreadable) throw new StoreUnavailableError('unreadable')
      return content
    },
    change: (key, rule) => apply(cells, key, rule)
  }
}

/**
 * Returns the format of a session. If a session is kept in Redis, its record is encrypted a second time, with the key in its
 * cookie. A caller without that key gets the entry, but not the record.
 */
export function sessionFormat(
  sealer: Sealer,
  lifetimeMs: (cell: Cell<SessionRecord>) => number
): Format<Cell<SessionRecord>, SessionKey> {
  const recordContext = (name: string, rev: number) => `${name} ${rev}`
  return {
    nameOf: ({ id }) => `session:${id}`,
    lifetimeMs,
    sealEntry: ({ entry }, name) => sealer.seal(Buffer.from(JSON.stringify(entry)), name),
    sealRecord({ entry, record }, previous, name) {
      if (!entry.hasRecord) return ''
      if (record === undefined || record === previous?.record) return undefined
      const { key, ...content } = record
      return sealer.seal(Buffer.from(JSON.stringify(content)), recordContext(name, entry.rev), key)
    },
    open(sealedEntry, sealedRecord, name, { key }) {
      const plaintext = sealer.open(sealedEntry, name)
      if (!plaintext) return undefined
      const entry = JSON.parse(plaintext.toString()) as Entry
      const opened = sealedRecord && sealer.open(sealedRecord, recordContext(name, entry.rev), key)
      if (!opened) return { entry }
      const content = JSON.parse(opened.toString()) as SessionRecord
      return { entry, record: key === undefined ? content : { ...content, key } }
    }
  }
}

// The clocks of two processes may differ by up to five minutes, so a message is accepted until it is five minutes old. During
// this time, an attacker who has recorded the message can repeat it. So the receiver must subtract the age of the message from
// every duration in it.
const MAX_AGE_MS = 300_000
// The maximum length of an encrypted message. Longer strings are rejected before they are decoded.
const MAX_LENGTH = 512
const KINDS: readonly unknown[] = ['lost', 'loggedOut', 'pause', 'loginPause'] satisfies Message['kind'][]

/**
 * Encrypts the messages between processes that share a Redis. Anyone who can use this Redis can publish messages, but the
 * processes accept only messages that were encrypted with one of the session secrets.
 * @param channel the channel of the messages; a message from another channel, for example from another deployment, is rejected
 * @param now milliseconds since the epoch
 * @example createMessageSeal(sealer, channel, Date.now).seal({ kind: 'pause', ms: 1000 })
 */
export function createMessageSeal(sealer: Sealer, channel: string, now: () => number) {
  return {
    /** Encrypts and authenticates a message. */
    seal: (message: Message): string => sealer.seal(Buffer.from(JSON.stringify({ ...message, at: now() })), channel),
    /**
     * Returns the message. Returns undefined if `text` is forged, malformed, from another channel, of an unknown kind, or dated
     * more than five minutes in the past or the future.
     */
    open(text: string): Message | undefined {
      const plaintext = text.length > MAX_LENGTH ? undefined : sealer.open(text, channel)
      if (!plaintext) return undefined
      const { at, ...message } = JSON.parse(plaintext.toString()) as Message & { readonly at: number }
      const ageMs = now() - at
      // A process of another version may send messages of a kind that this process does not know.
      if (!KINDS.includes(message.kind) || !(Math.abs(ageMs) <= MAX_AGE_MS)) return undefined
      // The pause began when the message was sent, so subtract the age of the message. If the sender's clock is ahead, the age is
      // negative and counts as 0.
      if ('ms' in message) return { ...message, ms: message.ms - Math.max(0, ageMs) }
      return message
    }
  }
}
