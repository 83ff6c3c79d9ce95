/**
 * Finds out whether Redis still has everything that this process wrote. Locks and results must not disappear: a lock that
 * Redis lost is granted a second time, and a result that it lost makes the next request use a spent token.
 */
import { randomBytes } from 'node:crypto'
import type { RedisClient } from './redis-client.js'
import { EvictingError } from './redis-errors.js'

export interface RedisHealth {
  /**
   * Writes this process's heartbeat key and looks for lost data. False: Redis lost data since the last inspection.
   * @throws EvictingError when Redis is full and makes room by deleting keys; also the errors of the connection
   */
  inspect(client: RedisClient): Promise<boolean>
  /** Whether Redis may have deleted keys since the last inspection. Costs a command only where its policy allows that. */
  mayHaveEvicted(client: RedisClient): Promise<boolean>
}

interface Memory {
  readonly mayEvict: boolean
  /** Of the memory that Redis may use, between 0 and 1. */
  readonly used: number
  readonly evicted: number
}

// The heartbeat's value changes each time. A Redis that was restored from an older copy has an older value, or none.
const HEARTBEAT = `
local isKnown = redis.call('GET', KEYS[1]) == ARGV[1]
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return isKnown and 1 or 0`
const HEARTBEAT_MS = 86_400_000
// After it had to evict, Redis is used again when this much of its memory is free.
const FULL = 0.9

export function createRedisHealth(prefix: string): RedisHealth {
  const key = `${prefix}process:${randomBytes(16).toString('base64url')}`
  let lastBeat: string | undefined
  let lastEvicted: number | undefined
  let isFull = false
  let mayEvict = false

  async function beat({ commands }: RedisClient): Promise<boolean> {
    const next = randomBytes(16).toString('base64url')
    const isKnown = (await commands.eval(HEARTBEAT, 1, key, lastBeat ?? '', next, HEARTBEAT_MS)) === 1
    const isFirst = lastBeat === undefined
    lastBeat = next
    return isKnown || isFirst
  }

  async function lookAtMemory(client: RedisClient): Promise<boolean> {
    const memory = await memoryOf(client)
    mayEvict = memory?.mayEvict ?? false
    if (!memory) return true
    // A counter that has become smaller is that of another process, after a restart or a failover.
    const hasEvicted = lastEvicted !== undefined && memory.evicted > lastEvicted
    lastEvicted = memory.evicted
    isFull = mayEvict && memory.used > FULL && (isFull || hasEvicted)
    if (isFull) throw new EvictingError('Redis deletes keys to make room')
    return !hasEvicted
  }

  return {
    async inspect(client) {
      const wasFull = isFull
      const hasBeat = await beat(client)
      return (await lookAtMemory(client)) && hasBeat && !wasFull
    },
    async mayHaveEvicted(client) {
      if (!mayEvict) return false
      const memory = await memoryOf(client)
      return memory !== undefined && memory.evicted !== lastEvicted
    }
  }
}

/** Undefined where INFO is forbidden. In a cluster the fullest node counts. */
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
