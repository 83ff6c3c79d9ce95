// The safeguards of the design, each with the change that switches it off. Without any of them, logins are lost.
import type { Safeguard } from './run.js'

export const safeguards: readonly Safeguard[] = [
  { name: 'the lock outlives the token request (20 s instead of 65 s)', times: { lockMs: 20_000 } },
  {
    name: 'the lock is checked directly before a token request is sent',
    store: store => ({
      ...store,
      mayUse: () => true,
      async take(session, reported) {
        const answer = await store.take(session, reported)
        return answer.kind === 'mine' ? { kind: 'mine', lock: { ...answer.lock, elapsedMs: () => 0 } } : answer
      }
    })
  },
  {
    name: 'elapsed time is measured with the system clock, too',
    clock: clock => ({ ...clock, now: () => 1_700_000_000_000 + clock.monotonic() })
  },
  { name: 'a process takes its lock again after a loss of data', ignoredScripts: ['hold'] },
  { name: 'nobody gets a lock until all processes have stored again what they remember', times: { settleMs: 0 } },
  {
    name: 'a process looks in its own memory first',
    store: store => ({ ...store, newerHere: () => undefined })
  }
]
