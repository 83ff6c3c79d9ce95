/**
 * The messages between processes that share a Redis. Everybody who can publish in this Redis could send messages, so each
 * message is encrypted and authenticated with a key of the keyring. A message can get lost, so the store must also work
 * without messages.
 */
import type { Sealer } from '../sealing/keyring.js'
import { isJsonObject } from '../support/json.js'

/**
 * - `lost`: Redis has lost data of this session. Every process stores again what it remembers of it.
 * - `out`: the session was logged out
 * - `pause`: the identity provider asked for a pause, so no process sends a token request for `ms` milliseconds
 */
export type Message =
  | { readonly kind: 'lost'; readonly id: string }
  | { readonly kind: 'out'; readonly id: string }
  | { readonly kind: 'pause'; readonly ms: number }

export interface MessageSeal {
  seal(message: Message): string
  /** Returns undefined if the text was not created by a process of this deployment, is too old, or is malformed. */
  open(text: string): Message | undefined
}

const CONTEXT = 'message'
// An old message could otherwise be sent again to pause all processes. The clocks of the processes may differ a little.
const MAX_AGE_MS = 120_000
const MAX_LENGTH = 400
const SESSION_ID = /^[\w-]{1,64}$/

/** @param now milliseconds since the epoch */
export function createMessageSeal(sealer: Sealer, now: () => number): MessageSeal {
  return {
    seal: message => sealer.seal(Buffer.from(JSON.stringify({ ...message, at: now() })), CONTEXT),
    open(text) {
      if (text.length > MAX_LENGTH) return undefined
      const plaintext = sealer.open(text, CONTEXT)
      const message: unknown = plaintext && JSON.parse(plaintext.toString())
      if (!isJsonObject(message) || !(Math.abs(now() - Number(message.at)) <= MAX_AGE_MS)) return undefined
      const { kind, id, ms } = message
      if ((kind === 'lost' || kind === 'out') && typeof id === 'string' && SESSION_ID.test(id)) return { kind, id }
      if (kind === 'pause' && typeof ms === 'number' && ms >= 0) return { kind, ms }
      return undefined
    }
  }
}
