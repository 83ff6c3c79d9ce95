/**
 * Messages between the replicas. A message can get lost, so the server must also work without messages. They make
 * waiting requests continue sooner, and they tell all replicas at once about a logout or a pause.
 */
import { randomBytes } from 'node:crypto'
import { type BroadcastSealParts, createBroadcastSeal } from '../sealing/broadcast-seal.js'
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
  /**
   * Sends a logout mark, which is a key without a value, to every replica. The mark expires after `ttlMs` milliseconds.
   * @throws TypeError if `key` is not that of a logout mark
   */
  mark(key: string, ttlMs: number): Command<unknown>
  /** Asks every replica to send no token requests for `ms` milliseconds. */
  pause(ms: number): Command<unknown>
}

export interface BroadcastParts extends Pick<BroadcastSealParts<string>, 'keyring' | 'now'> {
  /** The prefix of all Redis keys and channels of the deployment. */
  readonly prefix: string
  readonly receivers: Receivers
}

export interface Receivers {
  wake(key: string): void
  mark(key: string, ttlMs: number): void
  pause(ms: number): void
}

const KINDS = ['logout', 'pause'] as const
type Kind = (typeof KINDS)[number]

export function createBroadcast({ prefix, keyring, now, receivers }: BroadcastParts): Broadcast {
  const wakeChannel = `${prefix}wake:${randomBytes(16).toString('base64url')}`
  const everyone = `${prefix}everyone`
  const { seal, open } = createBroadcastSeal({ keyring, channel: everyone, kinds: KINDS, now })

  function publish(kind: Kind, id: string, ms: number): Command<unknown> {
    const message = seal({ kind, id, value: String(Math.ceil(ms)) })
    return (commands: RedisCommands) => commands.publish(everyone, message)
  }

  return {
    wakeChannel,
    channels: [wakeChannel, everyone],
    receive(channel, text) {
      // A script in Redis sends this message, so it is not authenticated. It changes no state: waiting requests only ask
      // Redis sooner whether the lock was released.
      if (channel === wakeChannel) return receivers.wake(text)
      const message = open(text)
      if (!message) return
      const { kind, id, value, ageMs } = message
      // Without this subtraction, somebody could prolong a pause by sending a recorded message again.
      const leftMs = Number(value) - ageMs
      if (!(leftMs > 0)) return
      if (kind === 'pause') receivers.pause(leftMs)
      else receivers.mark(`${kind}:${id}`, leftMs)
    },
    mark: (key, ttlMs) => publish('logout', key.replace(/^logout:/, ''), ttlMs),
    pause: ms => publish('pause', 'provider', ms)
  }
}
