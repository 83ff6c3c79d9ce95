/**
 * The messages between processes that share a Redis. Everybody who can publish in this Redis can send messages, but only a
 * process with one of the session secrets can send a message that the processes accept.
 */
import type { Keyring } from '../session/keyring.js'
import type { Message } from './cells.js'

interface MessageSealParts {
  /** Its newest secret seals messages. All its secrets open messages, so that a secret can be replaced. */
  readonly keyring: Pick<Keyring, 'sealer'>
  /** The channel of the messages. A message of another channel, for example of another deployment, is not accepted. */
  readonly channel: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

// The clocks of two processes may differ by this time. An attacker who has recorded a message can send it again for as long, so
// the receiver must also subtract the age of the message from every duration in it.
const MAX_AGE_MS = 300_000
// The length of the longest sealed message. Longer texts are rejected before they are decoded.
const MAX_LENGTH = 512
const KINDS: readonly unknown[] = ['lost', 'loggedOut', 'pause'] satisfies Message['kind'][]

/** @example createMessageSeal({ keyring, channel, now: Date.now }).seal({ kind: 'pause', ms: 1000 }) */
export function createMessageSeal({ keyring, channel, now }: MessageSealParts) {
  const sealer = keyring.sealer('message')
  return {
    /** Encrypts and authenticates a message. */
    seal: (message: Message): string =>
      sealer.seal(Buffer.from(JSON.stringify({ ...message, at: Math.round(now()) })), channel),
    /**
     * Returns the message. Returns undefined if `text` is forged, malformed, from another channel, of another kind, or sealed
     * more than five minutes ago or ahead.
     */
    open(text: string): Message | undefined {
      const plaintext = text.length > MAX_LENGTH ? undefined : sealer.open(text, channel)
      if (!plaintext) return undefined
      const { at, ...message } = parse(plaintext)
      const ageMs = now() - at
      // A process of another version may send messages of another kind.
      if (!KINDS.includes(message.kind) || !(Math.abs(ageMs) <= MAX_AGE_MS)) return undefined
      // The pause began when the message was sent, so its age is subtracted. The age is negative if the clock of the sender is ahead.
      if (message.kind === 'pause') return { ...message, ms: message.ms - Math.max(0, ageMs) }
      return message
    }
  }
}

/** Returns an empty object for a text that is no message, which only a process of another version can have sealed. */
function parse(plaintext: Buffer): Message & { readonly at: number } {
  try {
    return JSON.parse(plaintext.toString())
  } catch {
    return {} as Message & { readonly at: number }
  }
}
