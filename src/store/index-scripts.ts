/**
 * The scripts of the session index, as Lua for Redis and in TypeScript for one process. A list has the ids of sessions, each
 * with the time at which it expires. Beside the list, `out` has the time of the last logout. Both keys have one hash tag, so
 * they are on the same node of a Redis Cluster.
 */
import { createHash } from 'node:crypto'
import { createExpiringMap } from '../support/expiring-map.js'
import { createScriptRunner, type SendCommand } from './script-runner.js'
import type { ScriptTimes } from './scripts.js'

/** `entryMs` is the lifetime of a session in a list, and `loginMs` that of the time of a logout. */
export type IndexTimes = Pick<ScriptTimes, 'entryMs' | 'loginMs'>

/** `list` is the name of a list. Times of issue are in seconds since the epoch, on the clock of the provider. */
export interface IndexScripts {
  /** Adds a session. Returns false and adds nothing if the last logout is not older than `issuedAt`. */
  join(list: string, id: string, issuedAt: number | undefined): Promise<boolean>
  /** Returns the sessions of a list. If `issuedAt` is given, stores it as the time of the last logout. */
  find(list: string, issuedAt: number | undefined): Promise<readonly string[]>
  leave(list: string, ids: readonly string[]): Promise<void>
  /** Returns true at the first call for this token within its lifetime, and false at every later call in any process. */
  claim(tokenId: string, lifetimeMs: number): Promise<boolean>
  /** Gives a claim a new lifetime. */
  keepClaim(tokenId: string, lifetimeMs: number): Promise<void>
  /** Undoes `claim`, because the token has had no effect. */
  release(tokenId: string): Promise<void>
}

// A full Redis rejects a write that needs memory only if it is the first write of its script, so `find`, `claim` and
// `keepClaim` begin with DEL. A logout therefore works on a full Redis.

// KEYS: the list (a sorted set), the time of the last logout.
const PRELUDE = `
local list, outKey = KEYS[1], KEYS[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`

// ARGV: id, entryMs, the time of issue or an empty text
const JOIN = `
local out = tonumber(redis.call('GET', outKey))
local issuedAt = tonumber(ARGV[3])
if out and issuedAt and issuedAt <= out then return 0 end
redis.call('ZADD', list, now + ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', list, '-inf', now)
redis.call('PEXPIRE', list, ARGV[2])
return 1
`

// ARGV: loginMs, the time of issue or an empty text
const FIND = `
local issuedAt = tonumber(ARGV[2])
if issuedAt then
  local out = tonumber(redis.call('GET', outKey))
  redis.call('DEL', outKey)
  redis.call('SET', outKey, math.max(issuedAt, out or issuedAt), 'PX', ARGV[1])
end
return redis.call('ZRANGEBYSCORE', list, '(' .. now, '+inf')
`

// ARGV: ids
const LEAVE = `
for _, id in ipairs(ARGV) do redis.call('ZREM', list, id) end
return nil
`

// KEYS: the token. ARGV: its lifetime in milliseconds
const CLAIM = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
return 1
`

// KEYS: the token. ARGV: its lifetime in milliseconds
const KEEP_CLAIM = `
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
return nil
`

// KEYS: the token
const RELEASE = `return redis.call('DEL', KEYS[1])`

const LUA = {
  join: PRELUDE + JOIN,
  find: PRELUDE + FIND,
  leave: PRELUDE + LEAVE,
  claim: CLAIM,
  keepClaim: KEEP_CLAIM,
  release: RELEASE
} as const

/** @param prefix the beginning of all keys of this deployment */
export function createRedisIndexScripts(send: SendCommand, prefix: string, times: IndexTimes): IndexScripts {
  const run = createScriptRunner(send, LUA)

  function listKeys(list: string): readonly string[] {
    const key = `${prefix}sessions:{${list}}`
    return [key, `${key}:out`]
  }

  // The id of a token is no secret, but it may be long, or contain any characters.
  function tokenKeys(tokenId: string): readonly string[] {
    return [`${prefix}logout-token:{${createHash('sha256').update(tokenId).digest('base64url')}}`]
  }

  return {
    join: async (list, id, issuedAt) => (await run('join', listKeys(list), [id, times.entryMs, issuedAt ?? ''])) === 1,
    find: async (list, issuedAt) => run('find', listKeys(list), [times.loginMs, issuedAt ?? '']),
    async leave(list, ids) {
      if (ids.length > 0) await run('leave', listKeys(list), ids)
    },
    claim: async (tokenId, lifetimeMs) => (await run('claim', tokenKeys(tokenId), [lifetimeMs])) === 1,
    async keepClaim(tokenId, lifetimeMs) {
      await run('keepClaim', tokenKeys(tokenId), [lifetimeMs])
    },
    async release(tokenId) {
      await run('release', tokenKeys(tokenId), [])
    }
  }
}

// A list with one session uses about 300 bytes.
const MAX_LISTS = 200_000
const MAX_TOKENS = 100_000

/** @param now milliseconds since the epoch */
export function createMemoryIndexScripts(now: () => number, { entryMs, loginMs }: IndexTimes): IndexScripts {
  const lists = createExpiringMap<Map<string, number>>(MAX_LISTS, now)
  const logouts = createExpiringMap<number>(MAX_LISTS, now)
  const tokens = createExpiringMap<true>(MAX_TOKENS, now)

  return {
    async join(list, id, issuedAt) {
      const out = logouts.get(list)
      if (out !== undefined && issuedAt !== undefined && issuedAt <= out) return false
      const ids = lists.get(list) ?? new Map<string, number>()
      // The session that expires first comes first.
      ids.delete(id)
      ids.set(id, now() + entryMs)
      for (const [expired, until] of ids) {
        if (until > now()) break
        ids.delete(expired)
      }
      lists.set(list, ids, entryMs)
      return true
    },
    async find(list, issuedAt) {
      if (issuedAt !== undefined) logouts.set(list, Math.max(issuedAt, logouts.get(list) ?? issuedAt), loginMs)
      return [...(lists.get(list) ?? [])].filter(([, until]) => until > now()).map(([id]) => id)
    },
    async leave(list, ids) {
      const found = lists.get(list)
      for (const id of ids) found?.delete(id)
      if (found?.size === 0) lists.delete(list)
    },
    async claim(tokenId, lifetimeMs) {
      if (tokens.get(tokenId)) return false
      tokens.set(tokenId, true, lifetimeMs)
      return true
    },
    async keepClaim(tokenId, lifetimeMs) {
      tokens.set(tokenId, true, lifetimeMs)
    },
    async release(tokenId) {
      tokens.delete(tokenId)
    }
  }
}
