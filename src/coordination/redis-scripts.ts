/**
 * Locks and results in Redis. Each step is one Lua script, so it is atomic. The keys of one piece of work share a hash tag,
 * which keeps them on one node of a cluster. Every script may run twice, because the reply to the first run can get lost.
 *
 * The time to live of a lock has two parts. The first part is the lease. During the second part, an owner that stopped
 * extending its lock may still deliver a result, but another replica may take over the lock.
 */
import { createHash } from 'node:crypto'
import type { RedisCommands } from './redis-client.js'

export type Command<T> = (commands: RedisCommands) => Promise<T>

export interface RedisScripts {
  /**
   * Returns the result, unless it comes from the run `refused`. Without a result, acquires the lock. If another run owns the
   * lock, registers the caller as a waiter. If the lease of the owner has ended, its checkpoint becomes the result.
   */
  acquire(key: string, run: string, refused: string): Command<Acquired>
  /**
   * Stores the result and releases the lock. If another run has stored a result, a result with tokens has precedence, and
   * otherwise the earlier result. Returns the other result if it has precedence.
   */
  finish(key: string, run: string, refused: string, text: string, ttlMs: number): Command<string | null>
  /** Stores the text that becomes the result if the lease ends before `finish`. */
  checkpoint(key: string, text: string, ttlMs: number): Command<void>
  /** Releases the lock without a result. */
  release(key: string, run: string): Command<void>
  /** Starts a new lease, even if Redis lost the lock. Returns false if another run owns the lock or has stored a result. */
  extend(key: string, run: string, refused: string): Command<boolean>
  /**
   * Replaces the result of the run `expected`, and keeps its time to live. Returns the time to live in milliseconds, or 0 if
   * the result of this run is no longer there.
   */
  replace(key: string, expected: string, text: string): Command<number>
  /** Stores again a result that Redis may have lost, unless Redis has another result that has precedence. */
  restore(key: string, text: string, ttlMs: number): Command<void>
  peek(key: string): Command<string | null>
  expire(key: string, ttlMs: number): Command<void>
}

export type Acquired =
  | { readonly kind: 'mine'; readonly stalledOwnerMs: number }
  | { readonly kind: 'held'; readonly leaseMs: number }
  | { readonly kind: 'result'; readonly text: string; readonly stalledOwnerMs: number }

export interface LockTimes {
  readonly leaseMs: number
  /** The time after the end of its lease in which an owner may still deliver a result. */
  readonly stalledMs: number
}

/**
 * The length of a run's id. The text of a result begins with the id of its run and a sign for its kind. If the result
 * replaced another one, the sign is followed by its version, which is the number of replacements.
 */
export const RUN_LENGTH = 22
export const VERSION_LENGTH = 6
export const NO_RUN = '-'.repeat(RUN_LENGTH)
export const WITH_TOKENS = '+'
export const WITHOUT_TOKENS = '-'
/** A result with tokens that replaced another one. */
export const REPLACEMENT = '*'

const COMMON = `
local function runOf(text) return text and string.sub(text, 1, ${RUN_LENGTH}) end
local function signOf(text) return string.sub(text, ${RUN_LENGTH + 1}, ${RUN_LENGTH + 1}) end
local function hasTokens(text) return signOf(text) ~= '${WITHOUT_TOKENS}' end
local function versionOf(text)
  return signOf(text) == '${REPLACEMENT}' and tonumber(string.sub(text, ${RUN_LENGTH + 2}, ${RUN_LENGTH + 1 + VERSION_LENGTH})) or 0
end
local function wakeWaiters(waiters, key)
  for _, channel in ipairs(redis.call('SMEMBERS', waiters)) do redis.call('PUBLISH', channel, key) end
  redis.call('DEL', waiters)
end
`

// A lock without a time to live, or with one that is too long, is corrected, so that no lock blocks a session forever.
// The value of a lock is the run id and the remaining time of the stalled owner before it.
// KEYS: lock, result, checkpoint, waiters. ARGV: run, refused run, lease, time of a stalled owner, wake-up channel.
const ACQUIRE = `
local leaseMs, stalledMs = tonumber(ARGV[3]), tonumber(ARGV[4])
local function isAccepted(text) return text and runOf(text) ~= ARGV[2] end
local lock = redis.call('GET', KEYS[1])
local leftMs = lock and redis.call('PTTL', KEYS[1]) or 0
if lock and (leftMs < 0 or leftMs > leaseMs + stalledMs) then
  leftMs = leaseMs + stalledMs
  redis.call('PEXPIRE', KEYS[1], leftMs)
end
local isStalled = lock and runOf(lock) ~= ARGV[1] and leftMs <= stalledMs
local result = redis.call('GET', KEYS[2])
if isAccepted(result) then return { 'result', result, 0 } end
if lock and runOf(lock) == ARGV[1] then return { 'mine', tonumber(string.sub(lock, ${RUN_LENGTH + 1})) } end
if lock and not isStalled then
  redis.call('SADD', KEYS[4], ARGV[5])
  redis.call('PEXPIRE', KEYS[4], leaseMs)
  return { 'held', leftMs - stalledMs }
end
local ownerMs = isStalled and leftMs or 0
local checkpoint = redis.call('GET', KEYS[3])
if isAccepted(checkpoint) then
  redis.call('SET', KEYS[2], checkpoint, 'PX', math.max(1, redis.call('PTTL', KEYS[3])))
  redis.call('DEL', KEYS[3])
  return { 'result', checkpoint, ownerMs }
end
redis.call('SET', KEYS[1], ARGV[1] .. ownerMs, 'PX', leaseMs + stalledMs)
return { 'mine', ownerMs }`

// KEYS: lock, result, checkpoint, waiters. ARGV: run, refused run, result, its milliseconds, key.
const FINISH = `
redis.call('DEL', KEYS[3])
local other = redis.call('GET', KEYS[2])
if runOf(redis.call('GET', KEYS[1])) == ARGV[1] then redis.call('DEL', KEYS[1]) end
local onlyOtherHasTokens = other and hasTokens(other) and not hasTokens(ARGV[3])
local onlyOursHasTokens = other and hasTokens(ARGV[3]) and not hasTokens(other)
local stays = other and runOf(other) ~= ARGV[2] and (onlyOtherHasTokens or runOf(other) ~= ARGV[1] and not onlyOursHasTokens)
if not stays then redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4]) end
wakeWaiters(KEYS[4], ARGV[5])
return stays and other`

// KEYS: lock, waiters. ARGV: run, key.
const RELEASE = `
if runOf(redis.call('GET', KEYS[1])) == ARGV[1] then redis.call('DEL', KEYS[1]) end
wakeWaiters(KEYS[2], ARGV[2])`

// KEYS: lock, result. ARGV: run, refused run, lease and time of a stalled owner together.
const EXTEND = `
local lock = redis.call('GET', KEYS[1])
if lock and runOf(lock) ~= ARGV[1] then return 0 end
local result = not lock and redis.call('GET', KEYS[2])
if result and runOf(result) ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], lock or (ARGV[1] .. '0'), 'PX', ARGV[3])
return 1`

// KEYS: result. ARGV: run of the result to replace, new result.
const REPLACE = `
local kept = redis.call('GET', KEYS[1])
if not kept then return 0 end
local leftMs = redis.call('PTTL', KEYS[1])
if runOf(kept) == runOf(ARGV[2]) then return leftMs end
if runOf(kept) ~= ARGV[1] or leftMs <= 0 then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', leftMs)
return leftMs`

// KEYS: result, checkpoint, waiters. ARGV: result, its milliseconds, key.
const RESTORE = `
local other = redis.call('GET', KEYS[1])
local isNewer = other and versionOf(ARGV[1]) > versionOf(other)
if other and (hasTokens(other) or not hasTokens(ARGV[1])) and not isNewer then return end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('DEL', KEYS[2])
wakeWaiters(KEYS[3], ARGV[3])`

/**
 * @param prefix the prefix of all keys; applications that share a Redis have different prefixes
 * @param channel the channel for messages that a lock, for which this process waits, has been released
 */
export function createRedisScripts(prefix: string, channel: string, { leaseMs, stalledMs }: LockTimes): RedisScripts {
  const lock = (key: string) => `${prefix}{${key}}:lock`
  const result = (key: string) => `${prefix}{${key}}:result`
  const checkpoint = (key: string) => `${prefix}{${key}}:checkpoint`
  const waiters = (key: string) => `${prefix}{${key}}:waiters`
  const acquire = script(ACQUIRE)
  const finish = script(FINISH)
  const release = script(RELEASE)
  const extend = script(EXTEND)
  const replace = script(REPLACE)
  const restore = script(RESTORE)

  return {
    acquire(key, run, refused) {
      const keys = [lock(key), result(key), checkpoint(key), waiters(key)]
      return async commands => acquired(await acquire(commands, keys, [run, refused, leaseMs, stalledMs, channel]))
    },
    finish(key, run, refused, text, ttlMs) {
      const keys = [lock(key), result(key), checkpoint(key), waiters(key)]
      return async commands =>
        (await finish(commands, keys, [run, refused, text, Math.ceil(ttlMs), key])) as string | null
    },
    checkpoint(key, text, ttlMs) {
      return async commands => {
        await commands.set(checkpoint(key), text, 'PX', Math.max(1, Math.ceil(ttlMs)))
      }
    },
    release(key, run) {
      return async commands => {
        await release(commands, [lock(key), waiters(key)], [run, key])
      }
    },
    extend(key, run, refused) {
      const keys = [lock(key), result(key)]
      return async commands => (await extend(commands, keys, [run, refused, leaseMs + stalledMs])) === 1
    },
    replace(key, expected, text) {
      return async commands => Number(await replace(commands, [result(key)], [expected, text]))
    },
    restore(key, text, ttlMs) {
      const keys = [result(key), checkpoint(key), waiters(key)]
      return async commands => {
        await restore(commands, keys, [text, Math.ceil(ttlMs), key])
      }
    },
    peek(key) {
      return commands => commands.get(result(key))
    },
    expire(key, ttlMs) {
      return async commands => {
        await commands.pexpire(result(key), Math.max(1, Math.ceil(ttlMs)))
      }
    }
  }

  function acquired(answer: unknown): Acquired {
    const [kind, value, stalledOwnerMs] = answer as [Acquired['kind'], unknown, unknown]
    if (kind === 'held') return { kind, leaseMs: Math.min(leaseMs, Number(value)) }
    if (kind === 'mine') return { kind, stalledOwnerMs: clamp(value) }
    return { kind, text: String(value), stalledOwnerMs: clamp(stalledOwnerMs) }
  }

  function clamp(ms: unknown): number {
    return Math.min(stalledMs, Math.max(0, Number(ms) || 0))
  }
}

type Script = (commands: RedisCommands, keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>

/** Sends only the SHA-1 hash of the script. If Redis does not know the script yet, sends its text. */
function script(body: string): Script {
  const text = COMMON + body
  const hash = createHash('sha1').update(text).digest('hex')
  return async function evaluate(commands, keys, args) {
    try {
      return await commands.evalsha(hash, keys.length, ...keys, ...args)
    } catch (error) {
      if (!(error as Error).message.startsWith('NOSCRIPT')) throw error
      return commands.eval(text, keys.length, ...keys, ...args)
    }
  }
}
