/** The two parts of every token request: getting the lock of its session, and sending the request under this lock. */
import type { IdentityProvider } from '../provider/client.js'
import { LEAST_REQUEST_MS, REQUEST_MS } from '../store/scripts.js'
import type { Lock, LockAnswer, SessionStore } from '../store/session-store.js'
import { type Clock, startStopwatch, wait } from '../support/clock.js'

export interface TokenRequestParts {
  readonly idp: Pick<IdentityProvider, 'enterTokenQueue'>
  readonly store: Pick<SessionStore, 'pausedMs' | 'mayUse'>
}

/**
 * A token request was not sent, so its code or refresh token is still unused.
 * - `paused`: the identity provider asked for a pause
 * - `pending`: too little time of the lock was left, or Redis may have lost the lock
 */
export class NotSentError extends Error {
  readonly reason: 'paused' | 'pending'
  readonly retryAfterSeconds: number

  constructor(reason: 'paused' | 'pending', retryMs: number) {
    super(reason === 'paused' ? 'the identity provider asked for a pause' : 'the lock could not be used any more')
    this.name = 'NotSentError'
    this.reason = reason
    this.retryAfterSeconds = Math.max(1, Math.ceil(retryMs / 1000))
  }
}

/** The longest time in milliseconds that a request waits for a lock. */
export const PATIENCE_MS = 5000
const MIN_DELAY_MS = 50
const MAX_DELAY_MS = 500

export interface LockParts {
  readonly store: Pick<SessionStore, 'take'>
  readonly clock: Clock
}

/**
 * Requests the lock of a session again and again while another process has it. Returns any other answer at once. Returns
 * `wait` if the lock was not free in time.
 * @param patienceMs the longest time to wait, in milliseconds; with 0, there is one request
 * @param owner the owner of the lock for a change
 */
export async function requestLock(
  { store, clock }: LockParts,
  session: Parameters<SessionStore['take']>[0],
  patienceMs: number,
  owner?: string
): Promise<LockAnswer> {
  const waitedMs = startStopwatch(clock)
  let loss: string | undefined
  for (let delayMs = MIN_DELAY_MS; ; delayMs = Math.min(2 * delayMs, MAX_DELAY_MS)) {
    const answer = await store.take(session, loss, owner)
    if (answer.kind !== 'wait' || waitedMs() >= patienceMs) return answer
    loss = answer.loss
    await wait(clock, delayMs)
  }
}

/**
 * Waits for a place in the queue for token requests, and then sends a request with the single-use code or token of a lock.
 * @param isUrgent true for the second request of dual mode, which has priority over the first requests of other sessions
 * @param send sends the request with the given time limit in milliseconds
 * @throws NotSentError if the request may not be sent now; ProviderError if the queue is full; every error of `send`
 * @example const step = await sendUnderLock(parts, lock, 'refresh', false, ms => mode.nextRequest(session, ms))
 */
export async function sendUnderLock<T>(
  { idp, store }: TokenRequestParts,
  lock: Lock,
  queue: 'refresh' | 'code exchange',
  isUrgent: boolean,
  send: (timeoutMs: number) => Promise<T>
): Promise<T> {
  const pausedMs = store.pausedMs(isUrgent || queue === 'code exchange')
  if (pausedMs > 0) throw new NotSentError('paused', pausedMs)
  const leaveQueue = await idp.enterTokenQueue(queue, isUrgent)
  try {
    // The process may have been suspended, or the queue may have been long. Another process must not get the lock while
    // this request is under way, and an aborted request would lose its new token.
    const isOurs = await store.mayUse(lock)
    const leftMs = Math.round(REQUEST_MS - lock.elapsedMs())
    if (!isOurs || leftMs < LEAST_REQUEST_MS) throw new NotSentError('pending', 0)
    return await send(leftMs)
  } finally {
    leaveQueue()
  }
}
