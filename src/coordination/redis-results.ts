/**
 * Locks and results in Redis, and how they change: each step is one script, so that nobody sees half of it. A lock and
 * its result share a hash tag, which keeps them on one node of a cluster. Every script may run twice, since an answer
 * can get lost; the scripts are sent whole each time, so that a Redis that forgot them needs nothing.
 */
import type { RedisCommands } from './redis-client.js'

export interface RedisResults {
  /**
   * Takes the lock unless somebody else has it, or there is a result other than the one `refused`. What a run left whose
   * lock has ended becomes the result.
   */
  begin(key: string, run: string, refused: string): Command<Begun>
  /**
   * Leaves the result, gives the lock back, tells those who wait. Should another run have left one meanwhile, a precious
   * one outweighs one that is not, and otherwise the one that began first stays, since its token was used first: that
   * is the other for a run that still has its lock, and itself for one that lost it. If the other stays, it is returned.
   */
  finish(key: string, run: string, refused: string, text: string, ttlMs: number): Command<string | null>
  /** Lays aside what becomes the result if the run's lock ends before it has finished. */
  leave(key: string, text: string, ttlMs: number): Command<void>
  /** Gives the lock back without a result, and lets those who wait try. */
  release(key: string, run: string): Command<void>
  /** Keeps the lock, or takes it again if Redis lost it; false when somebody else has it, or had it and is done. */
  extend(key: string, run: string, refused: string): Command<boolean>
  /** Leaves a result that Redis may have missed or lost, unless there is another, and no less precious. */
  restore(key: string, text: string, ttlMs: number): Command<void>
  look(key: string): Command<Begun | undefined>
}

type Command<T> = (commands: RedisCommands) => Promise<T>

/** `held`: by another, for `leftMs` more unless it is extended. */
export type Begun =
  | { readonly kind: 'mine' }
  | { readonly kind: 'held'; readonly leftMs: number }
  | { readonly kind: 'result'; readonly text: string }

/** A run's id. A result's text begins with that of the run that made it, and a sign that tells whether it is precious. */
export const RUN_LENGTH = 22
export const NO_RUN = '-'.repeat(RUN_LENGTH)
export const PRECIOUS = '+'
export const ORDINARY = '-'

// KEYS: lock, result, left. ARGV: run, refused run, milliseconds of the lock.
const BEGIN = `
local function isAnswer(text) return text and string.sub(text, 1, ${RUN_LENGTH}) ~= ARGV[2] end
local result = redis.call('GET', KEYS[2])
if isAnswer(result) then return { 'result', result } end
local owner = redis.call('GET', KEYS[1])
if owner == ARGV[1] then return { 'mine' } end
if owner then return { 'held', redis.call('PTTL', KEYS[1]) } end
local left = redis.call('GET', KEYS[3])
if isAnswer(left) then
  redis.call('SET', KEYS[2], left, 'PX', math.max(1, redis.call('PTTL', KEYS[3])))
  redis.call('DEL', KEYS[3])
  return { 'result', left }
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return { 'mine' }`

const OUTWEIGHS = `
local function outweighs(a, b)
  local sign = ${RUN_LENGTH} + 1
  return string.sub(a, sign, sign) == '${PRECIOUS}' and string.sub(b, sign, sign) ~= '${PRECIOUS}'
end
`

// KEYS: lock, result, left. ARGV: run, refused run, result, its milliseconds, channel, key.
const FINISH = `${OUTWEIGHS}
redis.call('DEL', KEYS[3])
local other = redis.call('GET', KEYS[2])
local by = other and string.sub(other, 1, ${RUN_LENGTH})
local isMine = redis.call('GET', KEYS[1]) == ARGV[1]
if isMine then redis.call('DEL', KEYS[1]) end
-- The other may be what this very run left, and somebody went on from.
local stays = by and by ~= ARGV[2]
  and (outweighs(other, ARGV[3]) or by ~= ARGV[1] and isMine and not outweighs(ARGV[3], other))
if not stays then redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4]) end
redis.call('PUBLISH', ARGV[5], ARGV[6])
return stays and other`

// KEYS: lock. ARGV: run, channel, key.
const RELEASE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
redis.call('PUBLISH', ARGV[2], ARGV[3])`

// KEYS: lock, result. ARGV: run, refused run, milliseconds of the lock.
const EXTEND = `
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
local result = not owner and redis.call('GET', KEYS[2])
if result and string.sub(result, 1, ${RUN_LENGTH}) ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1`

// KEYS: result, left. ARGV: result, its milliseconds, channel, key.
const RESTORE = `${OUTWEIGHS}
local other = redis.call('GET', KEYS[1])
if other and not outweighs(ARGV[1], other) then return end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('DEL', KEYS[2])
redis.call('PUBLISH', ARGV[3], ARGV[4])`

// KEYS: lock, result, left.
const LOOK = `
local leftMs = redis.call('PTTL', KEYS[1])
if leftMs ~= -2 then return { 'held', leftMs } end
local result = redis.call('GET', KEYS[2]) or redis.call('GET', KEYS[3])
return result and { 'result', result }`

export function createRedisResults(prefix: string, channel: string, lockMs: number): RedisResults {
  const lock = (key: string) => `${prefix}{${key}}:lock`
  const result = (key: string) => `${prefix}{${key}}:result`
  const left = (key: string) => `${prefix}{${key}}:left`

  function begun(answer: unknown): Begun | undefined {
    if (!Array.isArray(answer)) return undefined
    const [kind, value] = answer as [string, unknown]
    if (kind === 'held') return { kind, leftMs: Number(value) }
    return kind === 'result' ? { kind, text: String(value) } : { kind: 'mine' }
  }

  return {
    begin(key, run, refused) {
      return async commands =>
        begun(await commands.eval(BEGIN, 3, lock(key), result(key), left(key), run, refused, lockMs)) as Begun
    },
    finish(key, run, refused, text, ttlMs) {
      const keys = [lock(key), result(key), left(key)]
      const values = [run, refused, text, Math.ceil(ttlMs), channel, key]
      return async commands => (await commands.eval(FINISH, keys.length, ...keys, ...values)) as string | null
    },
    leave(key, text, ttlMs) {
      return async commands => {
        await commands.set(left(key), text, 'PX', Math.max(1, Math.ceil(ttlMs)))
      }
    },
    release(key, run) {
      return async commands => {
        await commands.eval(RELEASE, 1, lock(key), run, channel, key)
      }
    },
    extend(key, run, refused) {
      return async commands => (await commands.eval(EXTEND, 2, lock(key), result(key), run, refused, lockMs)) === 1
    },
    restore(key, text, ttlMs) {
      return async commands => {
        await commands.eval(RESTORE, 2, result(key), left(key), text, Math.ceil(ttlMs), channel, key)
      }
    },
    look(key) {
      return async commands => begun(await commands.eval(LOOK, 3, lock(key), result(key), left(key)))
    }
  }
}
