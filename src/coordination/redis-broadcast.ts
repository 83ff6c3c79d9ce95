/**
 * Messages between the replicas. A message can get lost, so the server must also work without messages. They make
 * waiting requests continue sooner, and they tell all replicas at once about a logout or a pause.
 */
import { randomBytes } from 'node:crypto'
import type { RedisCommands } from './redis-client.js'
import type { Command } from './redis-scripts.js'

export interface Broadcast {
  /**
   * The channel of this process. When another process releases a lock for which this process waits, the key of the lock
   * is published to this channel.
   */
  readonly wakeChannel: string
  readonly channels: readonly string[]
  receive(channel: string, message: string): void
  /** Sends a mark, which is a key without a value, to every replica. The mark expires after `ttlMs` milliseconds. */
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
