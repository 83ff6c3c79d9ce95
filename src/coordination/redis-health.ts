/**
 * Detects that Redis has lost data. If a lock is lost, a second process can acquire it. If the result of a refresh is
 * lost, the next request sends a refresh token that was already used. In both cases the identity provider may end the
 * login.
 */
import { randomBytes } from 'node:crypto'
import type { RedisClient } from './redis-client.js'
import { EvictingError } from './redis-errors.js'

export interface RedisHealth {
  /**
   * Checks that the key which this process wrote at the last inspection is still there, and that no keys were evicted
   * since the last inspection. Writes a new value under this key. Returns false if Redis has lost data.
   * @throws EvictingError if Redis is full and evicts keys to make room; also the errors of the connection
   */
  inspect(client: RedisClient): Promise<boolean>
  /**
   * Returns true if Redis may have evicted keys since the last inspection. Sends INFO only if the last inspection found
   * that `maxmemory-policy` allows eviction.
   */
  mayHaveEvicted(client: RedisClient): Promise<boolean>
}

interface Memory {
  readonly mayEvict: boolean
  /** The used share of `maxmemory`, usually between 0 and 1. */
  readonly used: number
  /** The number of keys evicted since Redis started. */
  readonly evicted: number
}

// Each write stores a new random value. If Redis was restored from an older copy, the key has an older value or is
// missing.
const HEARTBEAT_SCRIPT = `
local isKnown = redis.call('GET', KEYS[1]) == ARGV[1]
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return isKnown and 1 or 0`
const HEARTBEAT_TTL_MS = 86_400_000
// A Redis that has evicted keys is not used again until its memory usage is at or below this share of `maxmemory`.
const FULL_SHARE = 0.9

export function createRedisHealth(prefix: string): RedisHealth {
  const key = `${prefix}process:${randomBytes(16).toString('base64url')}`
  let lastHeartbeat: string | undefined
  let lastEvicted: number | undefined
  let isFull = false
  let mayEvict = false

  async function writeHeartbeat({ commands }: RedisClient): Promise<boolean> {
    const next = randomBytes(16).toString('base64url')
    const isKnown = (await commands.eval(HEARTBEAT_SCRIPT, 1, key, lastHeartbeat ?? '', next, HEARTBEAT_TTL_MS)) === 1
    const isFirst = lastHeartbeat === undefined
    lastHeartbeat = next
    return isKnown || isFirst
  }

  async function checkMemory(client: RedisClient): Promise<boolean> {
    const memory = await memoryOf(client)
    mayEvict = memory?.mayEvict ?? false
    if (!memory) return true
    // The counter is smaller after a restart or a failover. This is not an eviction, and the heartbeat key shows if
    // data was lost.
    const hasEvicted = lastEvicted !== undefined && memory.evicted > lastEvicted
    lastEvicted = memory.evicted
    isFull = mayEvict && memory.used > FULL_SHARE && (isFull || hasEvicted)
    if (isFull) throw new EvictingError('Redis evicts keys to make room')
    return !hasEvicted
  }

  return {
    async inspect(client) {
      const wasFull = isFull
      const hasHeartbeat = await writeHeartbeat(client)
      return (await checkMemory(client)) && hasHeartbeat && !wasFull
    },
    async mayHaveEvicted(client) {
      if (!mayEvict) return false
      const memory = await memoryOf(client)
      return memory !== undefined && memory.evicted !== lastEvicted
    }
  }
}

/**
 * Returns undefined if INFO is forbidden. For a cluster, `used` is the value of the node with the highest memory usage.
 */
async function memoryOf(client: RedisClient): Promise<Memory | undefined> {
  try {
    const nodes = (await client.info()).map(parseInfo)
    return {
      mayEvict: nodes.some(({ mayEvict }) => mayEvict),
      used: Math.max(0, ...nodes.map(({ used }) => used)),
      evicted: nodes.reduce((sum, { evicted }) => sum + evicted, 0)
    }
  } catch (error) {
    if ((error as Error).name === 'ReplyError') return undefined
    throw error
  }
}

function parseInfo(text: string): Memory {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(text)?.[1] ?? ''
  const limit = Number(field('maxmemory'))
  return {
    mayEvict: field('maxmemory_policy') !== 'noeviction',
    used: limit > 0 ? Number(field('used_memory')) / limit : 0,
    evicted: Number(field('evicted_keys'))
  }
}
