/**
 * The messages between processes that share a Redis. Everybody who can publish in this Redis can send messages, but only a
 * process with one of the session secrets can send a message that the processes accept. A message can get lost, so the
 * store must also work without messages.
 */
import type { Keyring } from '../session/keyring.js'

/**
 * - `lost`: Redis has lost data of this session. Every process stores again what it remembers of it.
 * - `out`: the session was logged out
 * - `pause`: the identity provider asked for a pause, so no process sends a token request for `ms` milliseconds
 */
export type Message =
  | { readonly kind: 'lost' | 'out'; readonly id: string }
  | { readonly kind: 'pause'; readonly ms: number }

export interface MessageSealParts {
  /** Its newest secret seals messages. All its secrets open messages, so that a secret can be replaced. */
  readonly keyring: Pick<Keyring, 'sealer'>
  /** The channel of the messages. A message of another channel, for example of another deployment, is not accepted. */
  readonly channel: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

// The clocks of two processes may differ by this time. Somebody who has recorded a message can send it again for as long, so
// the receiver must also subtract the age of the message from every duration in it.
const MAX_AGE_MS = 300_000
// The length of the longest sealed message. Longer texts are rejected before they are decoded.
const MAX_LENGTH = 512
// Kind, id of the session, time of sealing, and milliseconds of a pause.
const PLAINTEXT = /^(lost|out|pause) ([A-Za-z0-9_-]{1,64}) (\d{1,15}) ([ -~]{0,200})$/
// A pause is not about one session.
const EVERYBODY = 'all'

/** @example createMessageSeal({ keyring, channel, now: Date.now }).seal({ kind: 'out', id: session.id }) */
export function createMessageSeal({ keyring, channel, now }: MessageSealParts) {
  const sealer = keyring.sealer('broadcast')
  return {
    /**
     * Encrypts and authenticates a message.
     * @throws TypeError if the id is malformed
     */
    seal(message: Message): string {
      const { kind } = message
      const [id, value] = kind === 'pause' ? [EVERYBODY, Math.ceil(message.ms)] : [message.id, '']
      const plaintext = `${kind} ${id} ${Math.round(now())} ${value}`
      if (!PLAINTEXT.test(plaintext))
        throw new TypeError(`a message of the kind ${kind} cannot be sent: its id is malformed`)
      return sealer.seal(Buffer.from(plaintext), channel)
    },
    /**
     * Returns the message. Returns undefined if `text` is forged, malformed, from another channel, or sealed more than five
     * minutes ago or ahead.
     */
    open(text: string): Message | undefined {
      const plaintext = text.length > MAX_LENGTH ? undefined : sealer.open(text, channel)
      const [, kind, id = '', sealedAt, value] = PLAINTEXT.exec(plaintext?.toString('latin1') ?? '') ?? []
      const ageMs = now() - Number(sealedAt)
      if (kind === undefined || Math.abs(ageMs) > MAX_AGE_MS) return undefined
      // The pause has begun when the message was sent. The clock of its sender may be ahead.
      if (kind === 'pause') return { kind, ms: (Number(value) || 0) - Math.max(0, ageMs) }
      return { kind: kind as 'lost' | 'out', id }
    }
  }
}
