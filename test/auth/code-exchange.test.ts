import test from 'ava'
import { createCodeExchanges } from '#src/auth/code-exchange.js'
import { markLoggedOut } from '#src/auth/logout-marks.js'
import { createMemoryCoordination } from '#src/coordination/memory.js'
import { UpstreamError } from '#src/idp/errors.js'
import { createLoginTransactions, newBrowserId } from '#src/login/transaction.js'
import { createSingleMode } from '#src/modes/single.js'
import { createKeyring } from '#src/sealing/keyring.js'
import { createClock } from '../helpers/clock.js'
import { busyError, createFakeIdp, oauthError, upstreamError } from '../modes/fake-idp.js'

function setUp({ keepSeconds = 60 } = {}) {
  const clock = createClock(1_700_000_000_000)
  const idp = createFakeIdp()
  const mode = createSingleMode(
    { scopes: ['data:read'] },
    { idp, clientId: 'our-client', pkce: true, keepsIdToken: false, now: clock.now }
  )
  const coordination = createMemoryCoordination(clock.now)
  const { exchange } = createCodeExchanges({ mode, coordination, now: clock.now, keepSeconds })
  const sealer = createKeyring(['the secret of these exchange tests']).sealer('login state')
  const { begin, open } = createLoginTransactions(sealer, clock.now)
  const browser = newBrowserId()
  /** Returns a function that opens the state of a new login. Each call opens the state again, as each callback request does. */
  const login = () => {
    const { state } = begin(browser, '/')
    return () => {
      const opened = open(state, browser)
      if (opened.kind !== 'valid') throw new Error(`the state is ${opened.kind}`)
      return opened.transaction
    }
  }
  return { clock, idp, coordination, exchange, login }
}

test('each code exchange creates a session with its own random id', async t => {
  const { exchange, login, clock } = setUp()
  const exchanges = [await exchange(login()(), 'a'), await exchange(login()(), 'b')]
  const records = exchanges.map(exchange => {
    if (!('record' in exchange)) throw new Error(exchange.kind)
    t.is(exchange.kind, 'fresh')
    return exchange.record
  })
  for (const [index, { id, issuedAt, fields }] of records.entries()) {
    t.is(Buffer.from(id, 'base64url').length, 16)
    t.is(issuedAt, clock.now())
    t.is(fields.token, `access-token-${index + 1}`)
    t.is(fields.refresh_token, `refresh-token-${index + 1}`)
    t.is(fields.expires_at, clock.now() + 3_600_000)
  }
  t.not(records[0]?.id, records[1]?.id)
})

test('the code exchange sends the code verifier of its login', async t => {
  const { exchange, login, idp } = setUp()
  const transaction = login()()
  await exchange(transaction, 'the-code')
  t.deepEqual(idp.grants, [{ type: 'code', code: 'the-code', codeVerifier: transaction.codeVerifier }])
})

test('twenty simultaneous callbacks with the same code cause one code exchange, and all of them succeed', async t => {
  const { exchange, login, idp } = setUp()
  const transaction = login()
  const exchanges = await Promise.all(Array.from({ length: 20 }, () => exchange(transaction(), 'the-code')))
  t.is(idp.grants.length, 1)
  for (const exchange of exchanges) t.deepEqual(exchange, exchanges[0])
  t.is(exchanges[0]?.kind, 'fresh')
})

test('a repeated callback gets the result of the first exchange, marked as repeated, as long as the browser has not sent its session cookie', async t => {
  const { exchange, login, idp, clock } = setUp()
  const transaction = login()
  const first = await exchange(transaction(), 'the-code')
  clock.advance(599_999)
  t.deepEqual(await exchange(transaction(), 'the-code'), { ...first, kind: 'repeated' })
  t.is(idp.grants.length, 1)
})

test('a login exchanges one code only, even if a repeated callback has another code', async t => {
  const { exchange, login, idp } = setUp()
  const transaction = login()
  await exchange(transaction(), 'the-code')
  t.is((await exchange(transaction(), 'another-code')).kind, 'repeated')
  t.is(idp.grants.length, 1)
})

for (const keepSeconds of [60, 0]) {
  test(`from ${keepSeconds} seconds after the browser has sent its session cookie until the state expires, the login counts as used`, async t => {
    const { exchange, login, idp, clock, coordination } = setUp({ keepSeconds })
    const transaction = login()
    const { expiresAt } = transaction()
    const first = await exchange(transaction(), 'the-code')
    if (!('record' in first)) throw new Error(first.kind)
    coordination.confirm(first.record.supersedes ?? '', keepSeconds * 1000)
    for (const at of [clock.now() + keepSeconds * 1000, expiresAt - 60_000, expiresAt - 1]) {
      clock.advance(at - clock.now())
      t.deepEqual(await exchange(transaction(), 'the-code'), { kind: 'used' })
    }
    clock.advance(1)
    t.throws(transaction, { message: /expired/ })
    t.is(idp.grants.length, 1)
  })
}

test('if many callbacks repeat a used login at the same time, all of them are told that it is used', async t => {
  const { exchange, login, idp, clock, coordination } = setUp()
  const transaction = login()
  const first = await exchange(transaction(), 'the-code')
  if (!('record' in first)) throw new Error(first.kind)
  coordination.confirm(first.record.supersedes ?? '', 60_000)
  clock.advanceSeconds(60)
  const repeats = await Promise.all(Array.from({ length: 10 }, () => exchange(transaction(), 'the-code')))
  for (const repeat of repeats) t.deepEqual(repeat, { kind: 'used' })
  t.is(idp.grants.length, 1)
})

test('a repeated callback after the logout is told that the login is used', async t => {
  const { exchange, login, coordination } = setUp()
  const transaction = login()
  const first = await exchange(transaction(), 'the-code')
  if (!('record' in first)) throw new Error(first.kind)
  await markLoggedOut(coordination, first.record.id, 86_400_000)
  t.deepEqual(await exchange(transaction(), 'the-code'), { kind: 'used' })
})

test('after a code was rejected, no further code is exchanged for the same state', async t => {
  const { exchange, login, idp, clock } = setUp()
  const transaction = login()
  idp.next(oauthError('invalid_grant'))
  const refusals = await Promise.all(Array.from({ length: 10 }, (_, n) => exchange(transaction(), `code ${n}`)))
  for (const refusal of refusals) t.deepEqual(refusal, { kind: 'refused' })
  clock.advanceSeconds(590)
  t.deepEqual(await exchange(transaction(), 'another code'), { kind: 'refused' })
  t.is(idp.grants.length, 1)
})

test('no code is sent during a pause that the provider asked for', async t => {
  const { exchange, login, idp, clock, coordination } = setUp()
  const transaction = login()
  coordination.pauseCalls(20_000)
  await t.throwsAsync(exchange(transaction(), 'c'), { instanceOf: UpstreamError, message: /pause/ })
  t.is(idp.grants.length, 0)
  clock.advanceSeconds(20)
  t.is((await exchange(transaction(), 'c')).kind, 'fresh')
})

test('a 429 at the code exchange also pauses all refreshes', async t => {
  const { exchange, login, idp, coordination } = setUp()
  idp.next(busyError(429, 7))
  await t.throwsAsync(exchange(login()(), 'c'))
  t.is(coordination.pausedMs({ isUrgent: true }), 7000)
})

for (const error of [oauthError('invalid_client'), upstreamError(), new TypeError('odd')]) {
  test(`a code exchange that fails with "${error.message}" fails for all waiting callbacks, and a later callback may repeat it`, async t => {
    const { exchange, login, idp } = setUp()
    const transaction = login()
    idp.next(error)
    const failures = [t.throwsAsync(exchange(transaction(), 'c')), t.throwsAsync(exchange(transaction(), 'c'))]
    for (const failure of failures) t.is(await failure, error)
    t.is(idp.grants.length, 1)
    t.is((await exchange(transaction(), 'c')).kind, 'fresh')
  })
}

test('two logins of one browser do not wait for each other', async t => {
  const { exchange, login, idp } = setUp()
  const held = idp.holdNext()
  const first = exchange(login()(), 'a')
  await held.begun
  t.is((await exchange(login()(), 'b')).kind, 'fresh')
  held.letGo()
  t.is((await first).kind, 'fresh')
})
