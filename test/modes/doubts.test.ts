// A refusal while replicas cannot agree: it may be that another of them spent the token and serves the browser.
import test, { type ExecutionContext } from 'ava'
import type { Coordination } from '#src/coordination/coordination.js'
import { createDoubts } from '#src/modes/doubts.js'
import { createRenewals } from '#src/modes/renewal.js'
import { oauthError } from './fake-idp.js'
import { type ModeName, modeNames, setUpRenewal } from './renewal-setup.js'

const leave = async () => {}
const together = { isAlone: () => false, leave }
const alone = { isAlone: () => true, leave }

/** The refresh step of a replica that may have been alone when it did its work. */
async function setUp(_t: ExecutionContext, mode: ModeName) {
  const parts = await setUpRenewal(mode)
  let isAlone = true
  const coordination: Coordination = {
    ...parts.coordination,
    once: (key, work, accept) => parts.coordination.once(key, () => work({ isAlone: () => isAlone, leave }), accept)
  }
  const { clock, idp, logs } = parts
  const renewals = createRenewals({
    ...parts,
    coordination,
    now: clock.now,
    marginSeconds: 0,
    keepSeconds: 60,
    maxAgeSeconds: 86_400
  })
  clock.advanceSeconds(3601)
  return {
    ...parts,
    current: () => renewals.current(parts.record, () => logs.log),
    refuse: () => idp.next(oauthError('invalid_grant')),
    /** Redis is back. */
    join() {
      isAlone = false
    }
  }
}

for (const mode of modeNames) {
  test(`${mode}: a refusal ends a login only when no other replica can be behind it`, async t => {
    const { current, refuse, join, clock, record } = await setUp(t, mode)
    refuse()
    t.deepEqual(await current(), { kind: 'unavailable', record, retryAfterSeconds: 1 })
    clock.advanceSeconds(1)
    join()
    refuse()
    t.deepEqual(await current(), { kind: 'ended' })
  })

  test(`${mode}: a refusal that is repeated after results are no longer kept is believed`, async t => {
    const { current, refuse, clock } = await setUp(t, mode)
    refuse()
    t.is((await current()).kind, 'unavailable')
    clock.advanceSeconds(59)
    refuse()
    t.is((await current()).kind, 'unavailable')
    clock.advanceSeconds(1)
    refuse()
    t.is((await current()).kind, 'ended')
  })

  test(`${mode}: a doubted refusal is asked for again after a moment, not at once`, async t => {
    const { current, refuse, refreshes, clock, live, record, refreshLines, logs } = await setUp(t, mode)
    refuse()
    await Promise.all(Array.from({ length: 100 }, current))
    t.is(refreshes(), 1)
    t.is(logs.find(({ event }) => event === 'refresh_failed')?.level, 40)
    t.is(refreshLines()[0]?.outcome, 'failed')
    clock.advanceSeconds(1)
    t.is((await live(record)).id, record.id)
  })
}

test('dual: so it is with the second refresh, whose token another replica may have gone on from', async t => {
  const { current, idp, record } = await setUp(t, 'dual')
  idp.next({}, oauthError('invalid_grant'))
  const session = await current()
  t.is(session.kind === 'unavailable' && session.record.id, record.id)
  t.is(session.kind === 'unavailable' && session.record.fields.refresh_token, idp.newestRefreshToken)
})

test('dual: a refused second refresh ends the login when no other replica can be behind it', async t => {
  const { current, idp, join } = await setUp(t, 'dual')
  join()
  idp.next({}, oauthError('invalid_grant'))
  t.is((await current()).kind, 'ended')
})

test('other failures raise no doubts', async t => {
  const { current, idp, refuse, clock } = await setUp(t, 'single')
  idp.next(oauthError('invalid_client'))
  t.is((await current()).kind, 'unavailable')
  clock.advanceSeconds(61)
  refuse()
  t.is((await current()).kind, 'unavailable', 'the first refusal')
})

test('doubts are about one token each, and forgotten after an hour', async t => {
  const { coordination, clock } = await setUpRenewal('single')
  const { isBelieved } = createDoubts(coordination, 60_000)
  t.true(await isBelieved('one', together))
  t.false(await isBelieved('one', alone))
  clock.advanceSeconds(61)
  t.false(await isBelieved('two', alone))
  t.true(await isBelieved('one', alone))
  clock.advanceSeconds(3600)
  t.false(await isBelieved('one', alone))
})
