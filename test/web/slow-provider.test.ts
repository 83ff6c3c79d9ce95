import test from 'ava'
import { createBrowser } from '../helpers/browser.js'
import { eventually } from '../helpers/eventually.js'
import { faults } from '../helpers/hostile-idp/index.js'
import { openCallback, signIn, startTestServer } from '../helpers/server.js'
import { statusesOf } from './support.js'

test('1,200 callbacks with invented codes do not delay the refreshes of nine sessions', async t => {
  // This limit is longer than the test, so that all codes that were sent to the provider keep waiting.
  const settings = { platform: { timeout: 600 } }
  const { server, origin, newBrowser, clock, idp } = await startTestServer(t, {
    mode: 'dual',
    settings,
    logLevel: 'warn'
  })
  const expired = Array.from({ length: 9 }, newBrowser)
  for (const one of expired) await signIn(one)
  clock.advanceSeconds(3600)

  // One client begins 1,200 logins, so each callback has a valid state and its code is sent to the provider.
  const connectTo = { [origin]: server.url }
  const attacker = createBrowser(t, { origin, connectTo, now: clock.now })
  const begin = async () => new URL((await attacker.get('/api/auth/login')).headers.location ?? '').searchParams
  const logins = [await begin(), ...(await Promise.all(Array.from({ length: 1199 }, begin)))]
  idp.failWhen('token', ({ form }) => (form.grant_type === 'refresh_token' ? faults.none : undefined))
  const codes = idp.hold('token')
  const statuses: number[] = []
  const callbacks = logins.map(async (login, n) => {
    const query = new URLSearchParams({ code: `invented-${n}`, state: login.get('state') ?? '' })
    const { statusCode, headers } = await openCallback(attacker, `/api/auth/callback?${query}`)
    statuses.push(statusCode)
    if (statusCode === 503) t.is(headers['retry-after'], '2')
  })
  // 64 codes are at the provider and 1,000 wait in the queue. The callbacks with the other codes are rejected immediately.
  await eventually(() => statuses.length === 1200 - 1064)
  t.deepEqual([...new Set(statuses)], [503])
  t.is(codes.waiting, 64)

  const answers = await Promise.all(expired.map(one => one.fetch('/api/auth/token')))
  t.deepEqual(statusesOf(answers), Array(expired.length).fill(200))
  t.is(codes.waiting, 64, 'no code exchange has a response yet')
  codes.release()
  await Promise.all(callbacks)
  t.is(statuses.filter(status => status === 400).length, 1064)
})
