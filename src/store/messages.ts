/**
 * The messages between processes that share a Redis. Each message is authenticated, because everybody who can publish in
 * this Redis can send messages. A message can get lost, so the store must also work without messages.
 */
import { type BroadcastSealParts, createBroadcastSeal } from '../session/broadcast-seal.js'

/**
 * - `lost`: Redis has lost data of this session. Every process stores again what it remembers of it.
 * - `out`: the session was logged out
 * - `pause`: the identity provider asked for a pause, so no process sends a token request for `ms` milliseconds
 */
export type Message =
  | { readonly kind: 'lost' | 'out'; readonly id: string }
  | { readonly kind: 'pause'; readonly ms: number }

export interface MessageSeal {
  seal(message: Message): string
  /** Returns undefined if the text was not created by a process of this deployment, or is too old. */
  open(text: string): Message | undefined
}

// A pause is not about one session.
const EVERYBODY = 'all'

export function createMessageSeal(parts: Omit<BroadcastSealParts<Message['kind']>, 'kinds'>): MessageSeal {
  const seal = createBroadcastSeal({ ...parts, kinds: ['lost', 'out', 'pause'] })
  return {
    seal: message =>
      message.kind === 'pause'
        ? seal.seal({ kind: 'pause', id: EVERYBODY, value: String(Math.ceil(message.ms)) })
        : seal.seal({ kind: message.kind, id: message.id, value: '' }),
    open(text) {
      const message = seal.open(text)
      if (!message) return undefined
      const { kind, id, value, ageMs } = message
      // The pause has begun when the message was sent.
      return kind === 'pause' ? { kind, ms: (Number(value) || 0) - ageMs } : { kind, id }
    }
  }
}
