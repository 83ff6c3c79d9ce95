// Refreshes of expired sessions (service contract, section 5.1, step 3.2). The server stores the refreshed session, so that
// requests with the old cookie get it instead of causing another refresh.
import test from 'ava'
import { modes } from '../helpers/modes.js'
import { grantsOf, setUpExpired, setUpRefresh } from './setup.js'

for (const mode of modes) {
  const grants = grantsOf[mode]

  test(`${mode}: a thousand simultaneous requests cause one refresh, and all of them get the same tokens`, async t => {
    const { record, live, refreshes, refreshLines, idp } = await setUpExpired(mode)
    const refreshed = await Promise.all(Array.from({ length: 1000 }, () => live(record)))
    t.is(refreshes(), grants)
    t.deepEqual(idp.reused, [])
    for (const other of refreshed) t.deepEqual(other, refreshed[0])
    const coalesced = refreshLines().filter(({ outcome, level }) => outcome === 'coalesced' && level === 'debug')
    t.is(coalesced.length, 999)
    const own = refreshLines().filter(line => !coalesced.includes(line))
    t.like(own, [{ outcome: 'succeeded', level: 'info', requests: 1000 }])
  })

  test(`${mode}: refreshes of different sessions do not wait for each other`, async t => {
    const { record, clock, live, login, idp } = await setUpRefresh(mode)
    const other = await login('another-session')
    clock.advanceSeconds(3601)
    const { waiting: first, letGo } = await idp.hold(() => live(record))
    t.is((await live(other)).id, 'another-session')
    letGo()
    t.is((await first).id, record.id)
  })

  test(`${mode}: an outdated cookie gets the newest session as long as the session lives, and none of its refresh tokens is sent`, async t => {
    const { record, clock, live, addProcess, idp, refreshes, refreshLines } = await setUpRefresh(mode)
    let held = record
    for (let times = 0; times < 3; times++) {
      clock.advanceSeconds(3601)
      held = await live(held)
    }
    await live(record)
    t.like(refreshLines().at(-1), { outcome: 'already_refreshed', reason: undefined, provider_calls: 0 })
    clock.advanceSeconds(3500)
    for (const process of [{ live }, addProcess()]) t.deepEqual(await process.live(record), held)
    t.is(refreshes(), 3 * grants)
    clock.advanceSeconds(3601)
    const newest = await addProcess().live(record)
    t.is(newest.fields.refresh_token, idp.newestRefreshToken)
    t.deepEqual(await live(held), newest)
    // The browser never sends a newer cookie.
    clock.advanceSeconds(86_400)
    t.is((await live(record)).fields.refresh_token, idp.newestRefreshToken)
    t.is(refreshes(), 5 * grants)
    t.deepEqual(idp.reused, [])
  })

  test(`${mode}: a refresh writes one log line with its outcome, its duration and a hash of its session, without tokens and session id`, async t => {
    const { record, clock, live, login, refreshLines, logs, idp } = await setUpRefresh(mode)
    const other = await login('another-session')
    clock.advanceSeconds(3601)
    const refreshed = await live(record)
    t.is(refreshLines().length, 1)
    const [line] = refreshLines()
    t.like(line, { event: 'refresh_succeeded', mode, outcome: 'succeeded', provider_calls: grants, expires_in: 3600 })
    t.is(typeof line?.duration_ms, 'number')
    t.regex(String(line?.session), /^[A-Za-z0-9_-]{8}$/)
    const tokens = [...Object.values(record.fields), ...Object.values(refreshed.fields), idp.newestRefreshToken]
    for (const secret of [...tokens, record.id]) t.false(logs.lines.join('').includes(String(secret)))
    clock.advanceSeconds(3601)
    await live(refreshed)
    await live(other)
    const [first, second, third] = refreshLines().map(({ session }) => session)
    t.is(first, second)
    t.not(first, third)
  })

  test(`${mode}: after platform.timeout a request is told to come back, and the refresh continues for the next request`, async t => {
    const { record, clock, idp, live, unavailable, refreshes, refreshLines, refreshing } = await setUpExpired(mode)
    const { waiting, letGo } = await idp.hold(() => unavailable(record))
    t.like(await clock.runUntilSettled(waiting), { retryAfterSeconds: 1, why: 'pending' })
    t.like(refreshLines()[0], { outcome: 'failed', reason: 'refresh_pending', provider_calls: 0, level: 'debug' })
    // A server that is stopping waits for the refresh.
    let hasEnded = false
    const ended = refreshing.ended().then(() => {
      hasEnded = true
    })
    await new Promise(resolve => setImmediate(resolve))
    t.false(hasEnded)
    letGo()
    await ended
    t.is((await live(record)).fields.refresh_token, idp.newestRefreshToken)
    t.is(refreshes(), grants)
    t.is(idp.queued, 0)
  })

  test(`${mode}: a request at another process waits for the lease at most 5 seconds, and gets the refreshed session as soon as it is stored`, async t => {
    const { record, clock, idp, live, addProcess, refreshes, counted } = await setUpRefresh(mode)
    const other = addProcess()
    clock.advanceSeconds(3601)
    const { waiting: first, letGo } = await idp.hold(() => live(record))
    const began = clock.now()
    const pending = { retryAfterSeconds: 1, why: 'pending' } as const
    t.like(await clock.runUntilSettled(other.unavailable(record)), pending)
    const waitedMs = clock.now() - began
    t.true(waitedMs >= 5000 && waitedMs <= 5500, `waited for ${waitedMs} ms`)
    t.is(counted.waitedSeconds.at(-1), waitedMs / 1000)
    const second = other.live(record)
    letGo()
    const both = await clock.runUntilSettled(Promise.all([second, first]))
    t.deepEqual(both[0], both[1])
    t.is(refreshes(), grants)
    t.deepEqual(idp.reused, [])
  })
}
