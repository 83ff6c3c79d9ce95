import type { Keyring } from './keyring.js'

/** A message that one replica sends to all replicas. */
export interface BroadcastMessage<Kind extends string> {
  readonly kind: Kind
  /** The id of the thing that the message is about: 1 to 64 letters, digits, `-` and `_`. */
  readonly id: string
  /** At most 200 printable ASCII characters. */
  readonly value: string
}

export interface ReceivedMessage<Kind extends string> extends BroadcastMessage<Kind> {
  /** The time since the message was sealed, in milliseconds. 0 if the clock of the sender is ahead. */
  readonly ageMs: number
}

/**
 * Encrypts and authenticates the messages between replicas. Anybody who may publish in the shared Redis can send
 * messages, but only a replica with one of the session secrets can send a message that the replicas accept.
 */
export interface BroadcastSeal<Kind extends string> {
  /** @throws TypeError if the kind is unknown, or if the id or the value is malformed */
  seal(message: BroadcastMessage<Kind>): string
  /**
   * Returns the message. Returns undefined if `text` is forged, malformed, of an unknown kind, from another channel, or
   * sealed more than five minutes ago or ahead.
   */
  open(text: string): ReceivedMessage<Kind> | undefined
}

export interface BroadcastSealParts<Kind extends string> {
  /** Its newest secret seals messages. All its secrets open messages, so that a secret can be replaced. */
  readonly keyring: Pick<Keyring, 'sealer'>
  /** The channel of the messages. A message of another channel, for example of another deployment, is not accepted. */
  readonly channel: string
  readonly kinds: readonly Kind[]
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

// The clocks of two replicas may differ by this time. Somebody who has recorded a message can send it again for as long, so
// the receiver must also subtract the age of the message from every duration in it.
const MAX_AGE_MS = 300_000
// The length of the longest sealed message. Longer texts are rejected before they are decoded.
const MAX_LENGTH = 512
// Kind, id, time of sealing and value.
const PLAINTEXT = /^([a-z]{1,32}) ([A-Za-z0-9_-]{1,64}) (\d{1,15}) ([ -~]{0,200})$/

export function createBroadcastSeal<Kind extends string>(parts: BroadcastSealParts<Kind>): BroadcastSeal<Kind> {
  const { keyring, channel, kinds, now } = parts
  const sealer = keyring.sealer('broadcast')

  function parse(plaintext: string): ReceivedMessage<Kind> | undefined {
    const [, name, id = '', sealedAt, value = ''] = PLAINTEXT.exec(plaintext) ?? []
    const kind = kinds.find(known => known === name)
    return kind && { kind, id, value, ageMs: now() - Number(sealedAt) }
  }

  return {
    seal({ kind, id, value }) {
      const plaintext = `${kind} ${id} ${Math.round(now())} ${value}`
      if (!parse(plaintext))
        throw new TypeError(`a message of the kind ${kind} cannot be sent: its id or value is malformed`)
      return sealer.seal(Buffer.from(plaintext), channel)
    },
    open(text) {
      const plaintext = text.length > MAX_LENGTH ? undefined : sealer.open(text, channel)
      const message = plaintext && parse(plaintext.toString('latin1'))
      if (!message || Math.abs(message.ageMs) > MAX_AGE_MS) return undefined
      return { ...message, ageMs: Math.max(0, message.ageMs) }
    }
  }
}
