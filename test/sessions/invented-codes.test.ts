// Without Redis, anybody can create cells by sending made-up codes to the callback. They must not prevent a login, or be kept
// instead of sessions. The limits of production, and a larger number of codes:
// INVENTED_CODES=10000000 npx ava --timeout 60m dist-test/sessions/invented-codes.test.js
import test from 'ava'
import type { SessionRecord } from '#src/cookie/session-record.js'
import { createSessions } from '#src/sessions/create-sessions.js'
import { createMemoryCells } from '#src/sessions/memory-cells.js'
import type { Cell } from '#src/sessions/transitions.js'
import { createClock } from '../helpers/clock.js'
import { recordOf, underLease } from './replicas.js'

const { INVENTED_CODES } = process.env
const CODES = Number(INVENTED_CODES ?? 8000)
const LIMITS = INVENTED_CODES === undefined ? { cells: 2000, logins: 500 } : {}
const LOGINS = 20
const LIFETIME_MS = 2 * 86_400_000
const LOGIN_LIFETIME_MS = 900_000

function setUp() {
  const clock = createClock()
  const lifetimeMs = ({ entry }: Cell<SessionRecord>) => (entry.rev === 0 ? LOGIN_LIFETIME_MS : LIFETIME_MS)
  const sessions = createSessions({
    cells: createMemoryCells(clock.now, lifetimeMs, LIMITS),
    clock,
    me: () => ({ owner: 'me' }),
    hostSlots: { isDead: async () => false },
    recoveryMs: 0,
    connectedAt: () => undefined,
    publish: async () => {},
    revoke() {},
    lifetimeMs: LIFETIME_MS
  })
  /** Exchanges a code as `code-exchange.ts` does. */
  async function exchange(id: string, isReal: boolean): Promise<void> {
    const tokens = { kind: 'tokens', record: recordOf(id, 1), pauseMs: 0 } as const
    const result = isReal ? tokens : ({ kind: 'over', end: { reason: 'refused' } } as const)
    await underLease({ sessions }, { id, rev: 0 }, async () => result)
  }
  return { clock, sessions, exchange }
}

// Serial, because they block the process for seconds.
for (const perSecond of [1.3, 500]) {
  test.serial(`${CODES} made-up codes, ${perSecond} a second: logins succeed, and sessions last`, async t => {
    const { clock, sessions, exchange } = setUp()
    const began = clock.now()
    const logins: { readonly id: string; readonly at: number }[] = []
    for (let code = 0; code < CODES; code++) {
      if (code % (CODES / LOGINS) === 0) {
        logins.push({ id: `login-${code}`, at: clock.now() })
        await exchange(`login-${code}`, true)
      }
      clock.advance(1000 / perSecond)
      await exchange(`made-up-${code}`, false)
    }
    const live = logins.filter(({ at }) => at > clock.now() - LIFETIME_MS)
    for (const { id } of live) {
      t.like(await sessions.current({ id, rev: 0 }), { kind: 'live', record: { rev: 1 } })
    }
    t.is(sessions.cached(), live.length)
    const hours = Math.round((clock.now() - began) / 3_600_000)
    t.log(`${hours} hours, ${Math.round(process.memoryUsage().heapUsed / 1e6)} MB of heap`)
  })
}
