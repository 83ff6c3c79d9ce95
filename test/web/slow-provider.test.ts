import test from 'ava'
import { ProviderError } from '#src/provider/provider-error.js'
import { providerFailure } from '#src/web/errors/login-error.js'
import { createBrowser } from '../helpers/browser.js'
import { faults } from '../helpers/hostile-idp/index.js'
import { openCallback, signIn, startTestServer } from '../helpers/server.js'
import { statusesOf } from './support.js'

test('a hundred callbacks with invented codes do not delay the refreshes of nine sessions', async t => {
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

  // One client begins 100 logins, so each callback has a valid state and its code is sent to the provider.
  const connectTo = { [origin]: server.url }
  const attacker = createBrowser(t, { origin, connectTo, now: clock.now })
  const begin = async () => new URL((await attacker.get('/api/auth/login')).headers.location ?? '').searchParams
  const logins = [await begin(), ...(await Promise.all(Array.from({ length: 99 }, begin)))]
  idp.failWhen('token', ({ form }) => (form.grant_type === 'refresh_token' ? faults.none : undefined))
  const codes = idp.hold('token')
  const callbacks = logins.map(async (login, n) => {
    const query = new URLSearchParams({ code: `invented-${n}`, state: login.get('state') ?? '' })
    return (await openCallback(attacker, `/api/auth/callback?${query}`)).statusCode
  })
  // 64 codes are at the provider, and the others wait in the queue.
  await codes.arrived(64)

  const answers = await Promise.all(expired.map(one => one.fetch('/api/auth/token')))
  t.deepEqual(statusesOf(answers), Array(expired.length).fill(200))
  t.is(codes.waiting, 64, 'no code exchange has a response yet')
  codes.release()
  t.deepEqual(await Promise.all(callbacks), Array(100).fill(400))
})

test('a request that finds the queue for the provider full can be repeated after two seconds', t => {
  const { status, headers } = providerFailure(new ProviderError('token', 'queue_full', 'not sent'))
  t.deepEqual([status, headers], [503, { 'Retry-After': '2' }])
})
