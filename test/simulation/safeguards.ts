// The safeguards of the design, each with the change that switches it off. Without any of them, logins are lost.
import type { Safeguard } from './run.js'

// The owner of a change that has requested no lock.
const NO_LOCK = 'no lock'

export const safeguards: readonly Safeguard[] = [
  {
    name: 'the lock outlives the token request (20 s instead of 65 s)',
    kinds: ['slow provider'],
    times: { lockMs: 20_000 }
  },
  {
    name: 'the lock is checked directly before a token request is sent',
    kinds: ['stop process for long'],
    store: store => ({
      ...store,
      mayUse: async () => true,
      async take(session, reported) {
        const answer = await store.take(session, reported)
        return answer.kind === 'mine' ? { kind: 'mine', lock: { ...answer.lock, elapsedMs: () => 0 } } : answer
      }
    })
  },
  {
    name: 'elapsed time is measured with the system clock, too',
    kinds: ['suspend process for long'],
    // A lock that is older than a second is confirmed in the store, which notices the suspension, too.
    queue: { share: 1, maxMs: 900 },
    clock: clock => ({ ...clock, now: () => 1_700_000_000_000 + clock.monotonic() })
  },
  {
    name: 'a process takes its lock again after a loss of data',
    kinds: ['flush', 'slow provider'],
    ignoredScripts: ['hold']
  },
  {
    name: 'nobody gets a lock until all processes have stored again what they remember',
    kinds: ['promote', 'flush', 'slow provider'],
    times: { settleMs: 0 }
  },
  {
    name: 'a loss of data is reported to all processes',
    kinds: ['flush', 'slow provider'],
    dropsMessages: true
  },
  {
    name: 'a handler changes a session in Redis only under the lock of the session',
    kinds: ['slow provider'],
    sessionStore: 'redis',
    store: store => ({
      ...store,
      mayUse: async lock => lock.owner === NO_LOCK || store.mayUse(lock),
      async take(session, reported, owner) {
        if (owner === undefined) return store.take(session, reported)
        const elapsedMs = () => 0
        return { kind: 'mine', lock: { ...session, owner: NO_LOCK, elapsedMs, generation: 0, suspectMs: undefined } }
      }
    })
  }
]
