/**
 * Locks and results in Redis. Each operation is one atomic Lua script. All Redis keys of one operation share a hash
 * tag, so that they are on the same node of a cluster. A script can run twice, because a caller may repeat it if the
 * reply is lost.
 *
 * A lock allows one run (one execution of the work) at a time. The time to live of a lock has two parts. During the
 * first part, the lease, only the owner may do the work. During the second part, another run may take over the lock,
 * but the first owner may still store its result.
 */
import { createHash } from 'node:crypto'
import type { RedisCommands } from './redis-client.js'

export type Command<T> = (commands: RedisCommands) => Promise<T>

export interface RedisScripts {
  /**
   * Returns the stored result, unless it comes from the run `refused`. If there is none, acquires the lock for `run`.
   * If the lease of another run has not ended, registers the caller for a message instead. If the lease has ended and
   * the other run has stored a checkpoint (an intermediate result), the checkpoint becomes the result and is returned.
   */
  acquire(key: string, run: string, refused: string): Command<Acquired>
  /**
   * Stores the result and releases the lock. If another run has already stored a result and only one of the two
   * contains tokens, that one has precedence. Otherwise the earlier result has precedence. A result of the run
   * `refused` is always replaced. Returns the stored result if it has precedence.
   */
  finish(key: string, run: string, refused: string, text: string, ttlMs: number): Command<string | null>
  /** Stores the intermediate result that `acquire` returns to other runs if the lease ends before `finish`. */
  checkpoint(key: string, text: string, ttlMs: number): Command<void>
  /** Releases the lock if `run` owns it, without storing a result. */
  release(key: string, run: string): Command<void>
  /**
   * Starts a new lease. Acquires the lock again if Redis has lost it. Returns false if another run owns the lock, or if
   * the lock is missing and another run has stored a result. A result of the run `refused` is ignored.
   */
  extend(key: string, run: string, refused: string): Command<boolean>
  /**
   * Replaces the stored result if it comes from the run `expected`. The time to live does not change. Returns the time
   * to live in milliseconds, or 0 if the stored result comes from another run or is missing.
   */
  replace(key: string, expected: string, text: string): Command<number>
  /**
   * Writes a result again that Redis may have lost. Keeps the result that Redis has if it contains tokens or if the
   * given result has none, unless the given result has a higher version.
   */
  restore(key: string, text: string, ttlMs: number): Command<void>
  peek(key: string): Command<string | null>
  expire(key: string, ttlMs: number): Command<void>
}

/** The reply to `acquire`. For `stalledOwnerMs`, see the interface Run. */
export type Acquired =
  /** The run owns the lock. */
  | { readonly kind: 'mine'; readonly stalledOwnerMs: number }
  /** Another run owns the lock, and its lease ends in `leaseMs` milliseconds. */
  | { readonly kind: 'held'; readonly leaseMs: number }
  /** There is a result. */
  | { readonly kind: 'result'; readonly text: string; readonly stalledOwnerMs: number }

export interface LockTimes {
  readonly leaseMs: number
  /** The time after the lease in which the owner may still store a result. */
  readonly stalledMs: number
}

/**
 * The length of the id of a run. The text of a stored result begins with the id of its run and one of the three
 * characters below. The character for a replacement is followed by the version, which is the number of replacements.
 */
export const RUN_LENGTH = 22
export const VERSION_LENGTH = 6
/** The value of `refused` if the caller has rejected no result. */
export const NO_RUN = '-'.repeat(RUN_LENGTH)
export const WITH_TOKENS = '+'
export const WITHOUT_TOKENS = '-'
/** The character for a result that contains tokens and has replaced an earlier result. */
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

// If a lock has no time to live or one that is too long, the script corrects it. Otherwise the lock could block a
// session forever. The value of a lock is the run id, followed by the milliseconds in which the earlier owner may still
// store a result.
//
// KEYS: lock, result, checkpoint, waiters.
// ARGV: run, refused run, lease in ms, time after the lease in ms, channel for the message to a waiter.
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

// KEYS: lock, result, checkpoint, waiters. ARGV: run, refused run, result, lifetime of the result in ms, key.
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

// KEYS: lock, result. ARGV: run, refused run, time to live of the lock in ms.
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

// KEYS: result, checkpoint, waiters. ARGV: result, lifetime of the result in ms, key.
const RESTORE = `
local other = redis.call('GET', KEYS[1])
local isNewer = other and versionOf(ARGV[1]) > versionOf(other)
if other and (hasTokens(other) or not hasTokens(ARGV[1])) and not isNewer then return end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('DEL', KEYS[2])
wakeWaiters(KEYS[3], ARGV[3])`

/**
 * @param prefix the prefix of all keys; applications that share a Redis have different prefixes
 * @param channel the channel on which this process is told that a lock was released
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
