import test from 'ava'
import { providerFailure } from '#src/http/errors.js'
import { UpstreamError } from '#src/idp/errors.js'
import { signIn, startTestServer } from '../helpers/server.js'

test('many sessions that wait for a slow provider keep nobody else waiting', async t => {
  const { newBrowser, clock, idp, browser } = await startTestServer(t, { mode: 'dual', logLevel: 'warn' })
  const expired = Array.from({ length: 100 }, newBrowser)
  for (const one of expired) await signIn(one)
  clock.advanceSeconds(3600)
  await signIn(browser)
  const before = idp.tokenRequests.length

  const slow = idp.hold('token')
  const waiting = expired.map(one => one.fetch('/api/auth/token'))
  await slow.arrived(64)
  t.is((await browser.get('/')).statusCode, 200)
  t.is((await browser.get('/healthz')).statusCode, 200)
  t.is((await browser.get('/readyz')).statusCode, 200)
  t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  t.is(idp.tokenRequests.length, before + 64)
  slow.release()
  for (const { statusCode } of await Promise.all(waiting)) t.is(statusCode, 200)
  t.is(idp.tokenRequests.length, before + 200)
  t.deepEqual(idp.reuses, [])
})

test('a call that was not made because too many wait is 503, with a time to come back', t => {
  const error = providerFailure(new UpstreamError('token', 'busy', 'too many'))
  t.is(error.status, 503)
  t.is(error.error, 'temporarily_unavailable')
  t.deepEqual(error.headers, { 'Retry-After': '2' })
})
