// The refresh step as the contract has it (section 5.1, step 3.2), and one provider call for however many ask.
import test from 'ava'
import { grantsOf, modeNames, setUpRefresh } from './refresh-setup.js'

for (const mode of modeNames) {
  const grants = grantsOf[mode]

  test(`${mode}: a session that has not expired is returned unchanged without a call to the provider`, async t => {
    const { record, clock, live, refreshes, logs } = await setUpRefresh(mode)
    t.is(await live(record), record)
    clock.advanceSeconds(3600)
    t.is(record.fields.expires_at, clock.now())
    t.is(await live(record), record)
    t.is(refreshes(), 0)
    t.deepEqual(logs.lines, [])
  })

  test(`${mode}: a session is refreshed when its expiry is earlier than now`, async t => {
    const { record, clock, live, refreshes, idp } = await setUpRefresh(mode)
    clock.advance(3_600_001)
    const refreshed = await live(record)
    t.is(refreshes(), grants)
    t.is(refreshed.id, record.id)
    t.is(refreshed.issuedAt, clock.now())
    t.is(refreshed.fields.expires_at, clock.now() + 3_600_000)
    t.is(refreshed.fields.refresh_token, idp.newestRefreshToken)
    for (const [field, value] of Object.entries(record.fields)) {
      t.not(refreshed.fields[field as keyof typeof refreshed.fields], value, field)
    }
  })

  test(`${mode}: a refreshed session is refreshed again when it has expired in turn, for as long as anyone likes`, async t => {
    const { record, clock, live, refreshes, idp } = await setUpRefresh(mode)
    let held = record
    for (let times = 1; times <= 24; times++) {
      clock.advanceSeconds(3601)
      held = await live(held)
      t.is(refreshes(), times * grants)
    }
    t.is(held.id, record.id)
    t.deepEqual(idp.reused, [])
  })

  test(`${mode}: a thousand requests at once are one refresh, and all get the same tokens`, async t => {
    const { record, clock, live, refreshes, refreshLines, idp } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    const refreshed = await Promise.all(Array.from({ length: 1000 }, () => live(record)))
    t.is(refreshes(), grants)
    t.deepEqual(idp.reused, [])
    for (const other of refreshed) t.deepEqual(other, refreshed[0])
    const outcomes = refreshLines().map(({ outcome }) => outcome)
    t.is(outcomes.filter(outcome => outcome === 'refreshed').length, 1)
    t.is(outcomes.filter(outcome => outcome === 'coalesced').length, 999)
  })

  test(`${mode}: refreshes of different sessions do not wait for each other`, async t => {
    const { record, clock, live, mode: modeUnderTest, idp } = await setUpRefresh(mode)
    const { fields } = await modeUnderTest.exchangeCode({ code: 'd', codeVerifier: 'v', nonce: 'n' })
    const other = { id: 'another-session', loggedInAt: clock.now(), issuedAt: clock.now(), fields }
    clock.advanceSeconds(3601)
    const held = idp.holdNext()
    const first = live(record)
    await held.begun
    t.is((await live(other)).id, 'another-session')
    held.letGo()
    t.is((await first).id, record.id)
  })

  test(`${mode}: two logins that were given one refresh token are refreshed once, and stay two`, async t => {
    const { record, clock, current, live, logout, refreshes, refreshing } = await setUpRefresh(mode)
    const identity = { iss: 'https://idp.example', sub: 'user-1', idToken: 'the ID token of one login' }
    const others = { identity: { ...identity, idToken: 'the ID token of the other' }, id: 'another-session' }
    clock.advanceSeconds(3601)
    const both = [live({ ...record, identity }), live({ ...record, ...others })] as const
    const [refreshed, otherRenewed] = await Promise.all(both)
    t.is(refreshes(), grants)
    t.deepEqual(refreshed.identity, identity)
    t.deepEqual(otherRenewed, { ...refreshed, ...others })
    t.deepEqual((await refreshing.newest({ ...record, ...others })).identity, others.identity)
    await logout(refreshed)
    t.is((await current(otherRenewed)).kind, 'live')
  })

  test(`${mode}: a request that left the browser before the new cookie came gets the kept result`, async t => {
    const { record, clock, live, refreshes, refreshLines } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    const refreshed = await live(record)
    await live(refreshed)
    for (const seconds of [1, 9, 49]) {
      clock.advanceSeconds(seconds)
      t.deepEqual(await live(record), refreshed)
    }
    t.is(refreshes(), grants)
    const { outcome, how, provider_calls } = refreshLines().at(-1) ?? {}
    t.deepEqual({ outcome, how, provider_calls }, { outcome: 'kept', how: 'kept', provider_calls: 0 })
  })

  test(`${mode}: keepSeconds after the browser sent its new cookie the kept result is gone`, async t => {
    const { record, clock, live, current, idp } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    const refreshed = await live(record)
    clock.advanceSeconds(3000)
    await live(refreshed)
    clock.advance(59_999)
    t.deepEqual(await live(record), refreshed)
    clock.advance(1)
    t.deepEqual(await current(record), { kind: 'ended' })
    t.deepEqual(idp.reused, [record.fields.refresh_token])
    t.is(await live(refreshed), refreshed)
  })

  test(`${mode}: with keepSeconds 0 a result is kept only until the browser has the new cookie`, async t => {
    const { record, clock, live, current } = await setUpRefresh(mode, { keepSeconds: 0 })
    clock.advanceSeconds(3601)
    const [refreshed] = await Promise.all([live(record), live(record)])
    t.deepEqual(await live(record), refreshed)
    await live(refreshed)
    t.deepEqual(await current(record), { kind: 'ended' })
  })

  test(`${mode}: a kept result that has itself expired is refreshed in turn, along the whole chain`, async t => {
    const { record, clock, live, refreshes, idp } = await setUpRefresh(mode, { lifetimeSeconds: 10 })
    clock.advanceSeconds(11)
    const second = await live(record)
    clock.advanceSeconds(11)
    const third = await live(second)
    clock.advanceSeconds(11)
    t.is(refreshes(), 2 * grants)
    const fourth = await live(record)
    t.is(refreshes(), 3 * grants)
    t.is(fourth.fields.refresh_token, idp.newestRefreshToken)
    for (const old of [record, second, third, fourth]) t.deepEqual(await live(old), fourth)
    t.is(refreshes(), 3 * grants)
    t.deepEqual(idp.reused, [])
  })

  test(`${mode}: simultaneous requests with old cookies of every generation cause one refresh of the newest session`, async t => {
    const { record, clock, live, refreshes, idp } = await setUpRefresh(mode, { lifetimeSeconds: 10 })
    clock.advanceSeconds(11)
    const second = await live(record)
    clock.advanceSeconds(11)
    const third = await live(second)
    clock.advanceSeconds(11)
    const generations = Array.from({ length: 60 }, (_, index) => [record, second, third][index % 3] ?? record)
    const refreshed = await Promise.all(generations.map(live))
    t.is(refreshes(), 3 * grants)
    t.deepEqual(idp.reused, [])
    for (const other of refreshed) t.is(other.fields.refresh_token, idp.newestRefreshToken)
  })

  test(`${mode}: a result that never reached the browser is kept for as long as the old cookie is valid`, async t => {
    const { record, clock, live, current, refreshes, idp } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    const refreshed = await live(record)
    clock.advanceSeconds(3000)
    t.deepEqual(await live(record), refreshed)
    t.is(refreshes(), grants)
    clock.advanceSeconds(40_000)
    t.is((await live(record)).fields.refresh_token, idp.newestRefreshToken)
    t.is(refreshes(), 2 * grants)
    t.deepEqual(idp.reused, [])
    clock.advanceSeconds(86_400)
    t.deepEqual(await current(record), { kind: 'ended' })
  })

  test(`${mode}: at a provider that does not rotate every expiry is a refresh, kept results notwithstanding`, async t => {
    const { record, clock, live, refreshes } = await setUpRefresh(mode, { lifetimeSeconds: 10, rotates: false })
    let held = record
    for (const times of [1, 2, 3]) {
      clock.advanceSeconds(11)
      const refreshed = await live(held)
      t.is(refreshed.fields.expires_at, clock.now() + 10_000)
      t.is(refreshed.fields.refresh_token, record.fields.refresh_token)
      t.deepEqual(await live(held), refreshed)
      t.deepEqual(await live(record), refreshed)
      t.is(refreshes(), times * grants)
      held = refreshed
    }
  })

  test(`${mode}: a refresh writes one line, with all that an operator needs and nothing secret`, async t => {
    const { record, clock, live, refreshLines, logs, idp } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    const refreshed = await live(record)
    t.is(refreshLines().length, 1)
    const [line] = refreshLines()
    t.like(line, { event: 'refresh', mode, outcome: 'refreshed', provider_calls: grants, lifetime_seconds: 3600 })
    t.is(typeof line?.duration_ms, 'number')
    t.regex(String(line?.session), /^[A-Za-z0-9_-]{8}$/)
    const tokens = [...Object.values(record.fields), ...Object.values(refreshed.fields), idp.newestRefreshToken]
    for (const secret of [...tokens, record.id]) t.false(logs.lines.join('').includes(String(secret)))
  })

  test(`${mode}: the lines of one session carry the same mark, those of another do not`, async t => {
    const { record, clock, live, refreshLines, mode: modeUnderTest } = await setUpRefresh(mode)
    const { fields } = await modeUnderTest.exchangeCode({ code: 'd', codeVerifier: 'v', nonce: 'n' })
    const other = { id: 'another-session', loggedInAt: clock.now(), issuedAt: clock.now(), fields }
    clock.advanceSeconds(3601)
    const refreshed = await live(record)
    clock.advanceSeconds(3601)
    await live(refreshed)
    await live(other)
    const [first, second, third] = refreshLines().map(({ session }) => session)
    t.is(first, second)
    t.not(first, third)
  })

  test(`${mode}: the newest form of a session is the result of its last refresh`, async t => {
    const { record, clock, live, refreshing } = await setUpRefresh(mode)
    t.is(await refreshing.newest(record), record)
    clock.advanceSeconds(3601)
    const second = await live(record)
    t.deepEqual(await refreshing.newest(record), second)
    t.deepEqual(await refreshing.newest(second), second)
    clock.advanceSeconds(3601)
    const third = await live(second)
    t.deepEqual(await refreshing.newest(second), third)
  })

  test(`${mode}: the newest is looked for along the whole chain that is kept`, async t => {
    const { record, clock, live, refreshing } = await setUpRefresh(mode, { lifetimeSeconds: 10 })
    clock.advanceSeconds(11)
    const second = await live(record)
    clock.advanceSeconds(11)
    const third = await live(second)
    t.deepEqual(await refreshing.newest(record), third)
  })

  test(`${mode}: the newest at a provider that does not rotate still has the one refresh token`, async t => {
    const { record, clock, live, refreshing } = await setUpRefresh(mode, { rotates: false })
    clock.advanceSeconds(3601)
    await live(record)
    t.is((await refreshing.newest(record)).fields.refresh_token, record.fields.refresh_token)
  })
}
