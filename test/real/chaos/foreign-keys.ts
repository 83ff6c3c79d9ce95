// Another application that shares Redis with the servers fills it and keeps writing.
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'

export const evictionPolicies = [
  'noeviction',
  'volatile-ttl',
  'volatile-lru',
  'volatile-lfu',
  'volatile-random',
  'allkeys-lru',
  'allkeys-lfu',
  'allkeys-random'
] as const
export type EvictionPolicy = (typeof evictionPolicies)[number]

export interface ForeignKeys {
  /** The number of keys that Redis has evicted. */
  evicted(): Promise<number>
  /** Stops writing and removes the memory limit of Redis. */
  stop(): Promise<void>
}

const ROOM_BYTES = 2 * 1024 * 1024
const VALUE = 'x'.repeat(8000)
const AT_ONCE = 20
const EVERY_MS = 20
// Longer than the lifetime of any key of the servers, so `volatile-ttl` evicts the servers' keys first.
const LIFETIME_SECONDS = 100_000

/** Resolves when Redis is full. */
export async function fillRedis(redis: Redis): Promise<ForeignKeys> {
  const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
  await redis.config('SET', 'maxmemory', used + ROOM_BYTES)
  let count = 0
  let isFull = false
  let hasEnded = false

  async function write(): Promise<void> {
    const pipeline = redis.pipeline()
    for (let n = 0; n < AT_ONCE; n++) pipeline.set(`foreign:${count++}`, VALUE, 'EX', LIFETIME_SECONDS)
    const results = await pipeline.exec()
    isFull ||= (results ?? []).some(([error]) => error !== null) || (await evicted()) > 0
  }

  async function evicted(): Promise<number> {
    return Number(/evicted_keys:(\d+)/.exec(await redis.info('stats'))?.[1])
  }

  async function writeOn(): Promise<void> {
    while (!hasEnded) {
      await write()
      await pause(EVERY_MS)
    }
  }

  while (!isFull) await write()
  const writing = writeOn()
  return {
    evicted,
    async stop() {
      hasEnded = true
      await writing
      await redis.config('SET', 'maxmemory', 0)
    }
  }
}
