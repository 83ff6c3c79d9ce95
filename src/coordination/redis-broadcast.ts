/** Messages between the replicas. They save time and help while Redis is down. Correctness does not depend on them. */
import { randomBytes } from 'node:crypto'
import type { RedisCommands } from './redis-client.js'
import type { Command } from './redis-scripts.js'

export interface Broadcast {
  /**
   * The channel of this process. Other processes publish to it when they release a lock that this process waits for.
   */
  readonly wakeChannel: string
  readonly channels: readonly string[]
  receive(channel: string, message: string): void
  /** Tells every replica about a mark. */
  mark(key: string, ttlMs: number): Command<unknown>
  /** Asks every replica to send no token requests for `ms` milliseconds. */
  pause(ms: number): Command<unknown>
}

export interface Receivers {
  wake(key: string): void
  mark(key: string, ttlMs: number): void
  pause(ms: number): void
}

const MESSAGE = /^(mark|pause) (\d{1,15})(?: (.{1,200}))?$/

export function createBroadcast(prefix: string, receivers: Receivers): Broadcast {
  const wakeChannel = `${prefix}wake:${randomBytes(16).toString('base64url')}`
  const everyone = `${prefix}everyone`
  const publish = (message: string) => (commands: RedisCommands) => commands.publish(everyone, message)

  return {
    wakeChannel,
    channels: [wakeChannel, everyone],
    receive(channel, message) {
      if (channel === wakeChannel) return receivers.wake(message)
      const [, kind, ms, key] = MESSAGE.exec(message) ?? []
      if (kind === 'mark' && key !== undefined) receivers.mark(key, Number(ms))
      else if (kind === 'pause') receivers.pause(Number(ms))
    },
    mark: (key, ttlMs) => publish(`mark ${Math.ceil(ttlMs)} ${key}`),
    pause: ms => publish(`pause ${Math.ceil(ms)}`)
  }
}
