import test from 'ava'
import { createMemoryCoordination } from '#src/coordination/memory.js'
import { createLoginTransactions, newLoginCookie } from '#src/login/transaction.js'
import { endSession } from '#src/modes/logouts.js'
import { createRedemptions } from '#src/modes/redemption.js'
import { createSingleMode } from '#src/modes/single.js'
import { createKeyring } from '#src/sealing/keyring.js'
import { createClock } from '../helpers/clock.js'
import { createFakeIdp, oauthError, upstreamError } from './fake-idp.js'

function setUp({ keepSeconds = 60 } = {}) {
  const clock = createClock(1_700_000_000_000)
  const idp = createFakeIdp()
  const mode = createSingleMode({ scopes: ['data:read'] }, { idp, clientId: 'our-client', pkce: true, now: clock.now })
  const coordination = createMemoryCoordination(clock.now)
  const { redeem } = createRedemptions({ mode, coordination, now: clock.now, keepSeconds })
  const sealer = createKeyring(['the secret of these redemption tests']).sealer('login state')
  const { begin, open } = createLoginTransactions(sealer, clock.now)
  const browser = newLoginCookie()
  /** A login that has come back from the provider; asked again it is opened again, as by a second request. */
  const login = () => {
    const { state } = begin(browser, '/')
    return () => {
      const opened = open(state, browser)
      if (opened.kind !== 'valid') throw new Error(`the state is ${opened.kind}`)
      return opened.transaction
    }
  }
  return { clock, idp, coordination, redeem, login }
}

test('a code becomes a session with a random id of its own', async t => {
  const { redeem, login, clock } = setUp()
  const redemptions = [await redeem(login()(), 'a'), await redeem(login()(), 'b')]
  const records = redemptions.map(redemption => {
    if (redemption.kind === 'spent') throw new Error('spent')
    t.is(redemption.kind, 'fresh')
    return redemption.record
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

test('the verifier of the login goes with its code', async t => {
  const { redeem, login, idp } = setUp()
  const transaction = login()()
  await redeem(transaction, 'the-code')
  t.deepEqual(idp.grants, [{ type: 'code', code: 'the-code', codeVerifier: transaction.codeVerifier }])
})

test('the same callback many times at once redeems the code once, and all of them succeed', async t => {
  const { redeem, login, idp } = setUp()
  const transaction = login()
  const redemptions = await Promise.all(Array.from({ length: 20 }, () => redeem(transaction(), 'the-code')))
  t.is(idp.grants.length, 1)
  for (const redemption of redemptions) t.deepEqual(redemption, redemptions[0])
  t.is(redemptions[0]?.kind, 'fresh')
})

test('a repeat while the result is kept gets it, and says that it is a repeat', async t => {
  const { redeem, login, idp, clock } = setUp()
  const transaction = login()
  const first = await redeem(transaction(), 'the-code')
  clock.advance(59_999)
  t.deepEqual(await redeem(transaction(), 'the-code'), { ...first, kind: 'repeated' })
  t.is(idp.grants.length, 1)
})

test('a login is good for one code, whatever code a repeat brings', async t => {
  const { redeem, login, idp } = setUp()
  const transaction = login()
  await redeem(transaction(), 'the-code')
  t.is((await redeem(transaction(), 'another-code')).kind, 'repeated')
  t.is(idp.grants.length, 1)
})

for (const keepSeconds of [60, 0]) {
  test(`a login that was kept for ${keepSeconds} seconds is spent until its state has ended`, async t => {
    const { redeem, login, idp, clock } = setUp({ keepSeconds })
    const transaction = login()
    const { expiresAt } = transaction()
    await redeem(transaction(), 'the-code')
    for (const at of [clock.now() + keepSeconds * 1000, expiresAt - 60_000, expiresAt - 1]) {
      clock.advance(at - clock.now())
      t.deepEqual(await redeem(transaction(), 'the-code'), { kind: 'spent' })
    }
    clock.advance(1)
    t.throws(transaction, { message: /expired/ })
    t.is(idp.grants.length, 1)
  })
}

test('many repeats of a spent login at once are all spent', async t => {
  const { redeem, login, idp, clock } = setUp()
  const transaction = login()
  await redeem(transaction(), 'the-code')
  clock.advanceSeconds(60)
  const repeats = await Promise.all(Array.from({ length: 10 }, () => redeem(transaction(), 'the-code')))
  for (const repeat of repeats) t.deepEqual(repeat, { kind: 'spent' })
  t.is(idp.grants.length, 1)
})

test('a repeat after the logout gets nothing', async t => {
  const { redeem, login, coordination } = setUp()
  const transaction = login()
  const first = await redeem(transaction(), 'the-code')
  if (first.kind === 'spent') throw new Error('spent')
  await endSession(coordination, first.record.id, 86_400_000)
  t.deepEqual(await redeem(transaction(), 'the-code'), { kind: 'spent' })
})

for (const error of [oauthError('invalid_grant'), upstreamError(), new TypeError('odd')]) {
  test(`a code exchange that fails with "${error.message}" fails for all who wait, and may be tried again`, async t => {
    const { redeem, login, idp } = setUp()
    const transaction = login()
    idp.next(error)
    const failures = [t.throwsAsync(redeem(transaction(), 'c')), t.throwsAsync(redeem(transaction(), 'c'))]
    for (const failure of failures) t.is(await failure, error)
    t.is(idp.grants.length, 1)
    t.is((await redeem(transaction(), 'c')).kind, 'fresh')
  })
}

test('logins of one browser do not wait for each other', async t => {
  const { redeem, login, idp } = setUp()
  const held = idp.holdNext()
  const first = redeem(login()(), 'a')
  await held.begun
  t.is((await redeem(login()(), 'b')).kind, 'fresh')
  held.letGo()
  t.is((await first).kind, 'fresh')
})
