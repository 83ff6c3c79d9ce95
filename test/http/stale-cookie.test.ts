// Requests with an old copy of a session cookie, for example from a restored backup of a browser, from a second profile or
// from a thief. The browser that has the newest cookie has proved it by sending that cookie.
import test, { type ExecutionContext } from 'ava'
import type { Browser } from '../helpers/browser.js'
import { type ModeName, modes } from '../helpers/modes.js'
import { signIn, startTestServer } from '../helpers/server.js'
import { guarded, sessionCookies, sessionHeader } from './support.js'

/** Starts a server and signs a browser in. `old` gets a copy of its first cookie, which is then refreshed three times. */
async function startWithOldCopy(t: ExecutionContext, mode: ModeName) {
  const started = await startTestServer(t, { mode, overrides: { metrics: { port: 0 } } })
  const { browser, clock, idp } = started
  await signIn(browser)
  const old = browser.clone()
  for (let times = 0; times < 3; times++) {
    clock.advanceSeconds(3600)
    t.is((await browser.fetch(guarded)).statusCode, 200)
  }
  t.is((await browser.fetch(guarded)).statusCode, 200)
  clock.advanceSeconds(60)
  return { ...started, old, calls: idp.tokenRequests.length }
}

async function assertStale(t: ExecutionContext, old: Browser): Promise<void> {
  const cookie = sessionHeader(old)
  const response = await old.fetch(guarded)
  t.is(response.statusCode, 401)
  t.is(response.body.length, 0)
  t.deepEqual(response.setCookies, [])
  t.is(sessionHeader(old), cookie)
}

for (const mode of modes) {
  test(`${mode}: an old copy of a cookie gets 401, its refresh token is not sent, and the browser with the newest cookie stays signed in`, async t => {
    const { browser, calls, clock, idp, logs, old, server } = await startWithOldCopy(t, mode)
    await assertStale(t, old)
    await assertStale(t, old)
    t.is(idp.tokenRequests.length, calls)
    const warnings = logs.entries.filter(({ event }) => event === 'stale_session_cookie')
    t.is(warnings.length, 2)
    t.like(warnings[0], { level: 40, rev: 1 })
    const metrics = await (await fetch(`http://127.0.0.1:${server.metricsPort}/metrics`)).text()
    t.regex(metrics, /^platform_auth_stale_session_cookies_total 2$/m)

    t.is((await browser.fetch(guarded)).statusCode, 200)
    t.is(idp.tokenRequests.length, calls)
    clock.advanceSeconds(3600)
    await assertStale(t, old)
    t.is((await browser.fetch(guarded)).statusCode, 200)
    t.is(idp.tokenRequests.length, calls + (mode === 'single' ? 1 : 2))
    t.deepEqual(idp.reuses, [])
  })

  test(`${mode}: a new login in the browser with the old copy ends every other copy of that cookie`, async t => {
    const { browser, calls, idp, old } = await startWithOldCopy(t, mode)
    await assertStale(t, old)
    await signIn(old)
    t.is((await old.fetch(guarded)).statusCode, 200)
    t.is((await browser.fetch(guarded)).statusCode, 401)
    t.is((await old.fetch(guarded)).statusCode, 200)
    t.is(idp.tokenRequests.length, calls + (mode === 'single' ? 1 : 2))
    t.deepEqual(idp.reuses, [])
    await signIn(browser)
    t.is((await browser.fetch(guarded)).statusCode, 200)
    t.is((await old.fetch(guarded)).statusCode, 200)
  })

  test(`${mode}: a logout with an old copy of a cookie ends the session of the newest cookie, too`, async t => {
    const { browser, old } = await startWithOldCopy(t, mode)
    t.is((await old.navigate('/api/auth/logout')).statusCode, 302)
    t.deepEqual(sessionCookies(old), [])
    t.is((await browser.fetch(guarded)).statusCode, 401)
  })
}
