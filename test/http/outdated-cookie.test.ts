// Requests with an outdated session cookie, for example from a restored backup of a browser, from a browser that crashed before
// it stored its cookies, or from a copy. They continue with the newest tokens of the session.
import test, { type ExecutionContext } from 'ava'
import { type ModeName, modes } from '../helpers/modes.js'
import { guarded, startSignedIn } from './support.js'

/** Starts a server and signs a browser in. `old` gets a copy of its first cookie, which is then refreshed three times. */
async function startWithOldCopy(t: ExecutionContext, mode: ModeName) {
  const started = await startSignedIn(t, { mode })
  const { browser, clock, idp } = started
  const old = browser.clone()
  for (let times = 0; times < 3; times++) {
    clock.advanceSeconds(3600)
    t.is((await browser.fetch(guarded)).statusCode, 200)
  }
  t.is((await browser.fetch(guarded)).statusCode, 200)
  clock.advanceSeconds(60)
  return { ...started, old, calls: idp.tokenRequests.length }
}

for (const mode of modes) {
  test(`${mode}: an outdated cookie gets the newest session, and none of its refresh tokens is sent`, async t => {
    const { browser, calls, clock, idp, old } = await startWithOldCopy(t, mode)
    const response = await old.fetch(guarded)
    t.is(response.statusCode, 200)
    t.true(response.setCookies.length > 0, 'the browser gets the newest session')
    t.deepEqual((await old.fetch(guarded)).setCookies, [])
    t.is(idp.tokenRequests.length, calls)
    clock.advanceSeconds(3600)
    for (const one of [old, browser]) t.is((await one.fetch(guarded)).statusCode, 200)
    t.is(idp.tokenRequests.length, calls + (mode === 'single' ? 1 : 2))
    t.deepEqual(idp.reuses, [])
  })
}
