// In dual mode a login or a refresh makes two requests to the token endpoint. The first one gets the wide-scope token that stays
// on the server (the internal token) and a refresh token. The second one uses that refresh token to get a token with fewer scopes
// for browsers (the public token).
import test from 'ava'
import type { UserInfo } from '#src/idp/client.js'
import { OAuthError, UpstreamError } from '#src/idp/errors.js'
import { createDualMode } from '#src/modes/dual.js'
import { LoginInterruptedError } from '#src/modes/mode.js'
import { grant, modeContract, setUpMode } from './contract.js'
import { busyError, oauthError, upstreamError } from './fake-idp.js'

const internalScopes = ['data:read', 'viewables:read']
const publicScopes = ['viewables:read']
const dual = {
  name: 'dual',
  scopes: internalScopes,
  grants: 2,
  tokenFields: ['internal_token', 'public_token'],
  create: (parts, more = []) => createDualMode({ internalScopes: [...internalScopes, ...more], publicScopes }, parts)
} satisfies Parameters<typeof modeContract>[0]

modeContract(dual)

const faults = [oauthError('invalid_grant'), oauthError('invalid_client'), oauthError('invalid_scope'), upstreamError()]

test('dual: a login requests an internal token and then a public token with fewer scopes', async t => {
  const { mode, idp, clock } = setUpMode(dual)
  t.true(mode.offersPublicToken)
  const { fields, identity } = await mode.exchangeCode(grant)
  t.is(identity, undefined)
  t.deepEqual(fields, {
    internal_token: 'access-token-1',
    public_token: 'access-token-2',
    refresh_token: 'refresh-token-2',
    expires_at: clock.now() + 3_600_000
  })
  t.deepEqual(idp.grants[1], { type: 'refresh', refreshToken: 'refresh-token-1', scope: 'viewables:read' })
})

test('dual: tokens() returns the internal token and the public token under their own names', async t => {
  const { mode, clock } = setUpMode(dual)
  t.deepEqual(mode.tokens((await mode.exchangeCode(grant)).fields, clock.now()), {
    internal: { access_token: 'access-token-1', expires_in: 3600 },
    public: { access_token: 'access-token-2', expires_in: 3600 }
  })
})

test('dual: expires_at follows the lifetime of the internal token, even if the public token is issued later and expires earlier', async t => {
  const { mode, idp, clock } = setUpMode(dual)
  const slowly = async () => {
    clock.advanceSeconds(5)
    return { expiresIn: 100 }
  }
  const started = clock.now()
  idp.next({ expiresIn: 1000 }, slowly)
  const login = await mode.exchangeCode(grant)
  t.is(login.fields.expires_at, started + 1_000_000)
  const refreshing = clock.now()
  idp.next({ expiresIn: 2000 }, slowly)
  const refreshed = await mode.refresh(login)
  t.is(refreshed.outcome === 'complete' && refreshed.fields.expires_at, refreshing + 2_000_000)
})

for (const error of faults) {
  test(`dual: if the request for the public token fails with "${error.message}", the login fails and its refresh token is revoked`, async t => {
    const { mode, idp } = setUpMode(dual)
    idp.next({}, error)
    const thrown = await t.throwsAsync(mode.exchangeCode(grant), { instanceOf: UpstreamError })
    // The provider accepted the code. Signing in again would fail in the same way, so the error is reported as the provider's.
    if (error instanceof OAuthError) t.true(thrown?.message.includes(error.error))
    else t.is(thrown, error)
    t.deepEqual(idp.revoked, ['refresh-token-1'])
  })
}

for (const status of [429, 503] as const) {
  test(`dual: if the request for the public token gets ${status} with a short Retry-After, the login waits and repeats the request once`, async t => {
    for (const seconds of [0, 1, 10]) {
      const { mode, idp, clock, waits } = setUpMode(dual)
      const started = clock.now()
      idp.next({}, busyError(status, seconds))
      t.deepEqual((await mode.exchangeCode(grant)).fields, {
        internal_token: 'access-token-1',
        public_token: 'access-token-3',
        refresh_token: 'refresh-token-3',
        expires_at: started + 3_600_000
      })
      t.deepEqual(waits, [seconds * 1000])
      t.deepEqual(idp.grants[1], { type: 'refresh', refreshToken: 'refresh-token-1', scope: 'viewables:read' })
      t.deepEqual(idp.grants[2], idp.grants[1])
      t.is(idp.grants.length, 3)
      t.deepEqual(idp.reused, [])
      t.deepEqual(idp.revoked, [])
    }
  })
}

const interruptions = [
  { what: 'a Retry-After of 11 seconds', answers: [busyError(429, 11)], waits: [] },
  { what: 'a 429 without Retry-After', answers: [busyError(429)], waits: [] },
  { what: 'a second 429', answers: [busyError(429, 10), busyError(429, 1)], waits: [10_000] },
  {
    what: 'a full queue of calls to the provider',
    answers: [new UpstreamError('token', 'busy', 'not made')],
    waits: []
  }
]

for (const { what, answers, waits: expected } of interruptions) {
  test(`dual: if ${what} prevents the request for the public token, the login is interrupted and no token is revoked`, async t => {
    const { mode, idp, waits } = setUpMode(dual)
    idp.next({}, ...answers)
    const error = await t.throwsAsync(mode.exchangeCode(grant), { instanceOf: LoginInterruptedError })
    t.is<UpstreamError | undefined, UpstreamError | undefined>(error?.cause, answers.at(-1))
    t.deepEqual(waits, expected)
    t.is(idp.grants.length, 1 + answers.length)
    t.deepEqual(idp.revoked, [])
  })
}

test('dual: if the repeated request for the public token times out, the login fails and its refresh token is revoked', async t => {
  const { mode, idp } = setUpMode(dual)
  const error = upstreamError()
  idp.next({}, busyError(429, 1), error)
  t.is(await t.throwsAsync(mode.exchangeCode(grant)), error)
  t.deepEqual(idp.revoked, ['refresh-token-1'])
})

test('dual: a refresh does not wait when the provider answers the request for the public token with 429', async t => {
  const { mode, idp, waits } = setUpMode(dual)
  const login = await mode.exchangeCode(grant)
  const error = busyError(429, 1)
  idp.next({}, error)
  t.like(await mode.refresh(login), { outcome: 'partial', calls: 2, error })
  t.deepEqual(waits, [])
})

test('dual: if the revocation after a failed login fails too, the login still fails with its first error', async t => {
  const { mode, idp } = setUpMode(dual)
  idp.revokeRefreshToken = () => Promise.reject(upstreamError())
  const error = upstreamError()
  idp.next({}, error)
  t.is(await t.throwsAsync(mode.exchangeCode(grant)), error)
})

for (const scope of [['viewables:read', 'data:read'], ['data:read'], internalScopes]) {
  test(`dual: a public token with the scopes "${scope.join(' ')}" is rejected at login and at refresh`, async t => {
    const { mode, idp } = setUpMode(dual)
    idp.next({}, { scope })
    await t.throwsAsync(mode.exchangeCode(grant), { instanceOf: UpstreamError, message: /more than/ })
    t.deepEqual(idp.revoked, ['refresh-token-2'])

    const login = await mode.exchangeCode(grant)
    idp.next({}, { scope })
    const refreshed = await mode.refresh(login)
    if (refreshed.outcome !== 'partial') throw new Error(refreshed.outcome)
    t.is(refreshed.state.fields.public_token, login.fields.public_token)
    t.is(refreshed.state.fields.refresh_token, idp.newestRefreshToken)
  })
}

test('dual: a public token is accepted if its scopes do not exceed the public scopes', async t => {
  for (const scope of [undefined, [], ['viewables:read'], ['viewables:read', 'viewables:read']]) {
    const { mode, idp } = setUpMode(dual)
    idp.next({}, { scope })
    t.is((await mode.exchangeCode(grant)).fields.public_token, 'access-token-2')
  }
})

test('dual: a public token is accepted although the provider, as Keycloak does, adds the scopes of OpenID Connect', async t => {
  const { mode, idp } = setUpMode(dual)
  const scope = ['openid', 'profile', 'email', 'viewables:read']
  idp.next({}, { scope })
  const login = await mode.exchangeCode(grant)
  t.is(login.fields.public_token, 'access-token-2')
  idp.next({}, { scope })
  t.is((await mode.refresh(login)).outcome, 'complete')
})

test('dual: the error about too many scopes lists the internal scopes and only counts the unknown scopes', async t => {
  const { mode, idp } = setUpMode(dual)
  idp.next({}, { scope: ['openid', 'viewables:read', 'data:read', 'made-up'] })
  await t.throwsAsync(mode.exchangeCode(grant), { message: /more than the public scopes \(data:read, 1 unknown\)$/ })
})

test('dual: the error about too many scopes does not contain a scope that is not configured', async t => {
  const { mode, idp } = setUpMode(dual)
  idp.next({}, { scope: ['something-the-provider-made-up'] })
  const error = await t.throwsAsync(mode.exchangeCode(grant))
  t.false(`${error?.stack} ${JSON.stringify(error)}`.includes('made-up'))
})

test('dual: the error about too many scopes does not contain the refresh token, so no log can show it', async t => {
  const { mode, idp } = setUpMode(dual)
  idp.next({}, { scope: internalScopes })
  const error = await t.throwsAsync(mode.exchangeCode(grant))
  t.false(JSON.stringify(error).includes('refresh-token'))
})

test('dual: a refresh gets a new internal token first, and then a new public token with the newest refresh token', async t => {
  const { mode, idp, clock } = setUpMode(dual)
  const login = await mode.exchangeCode(grant)
  t.deepEqual(await mode.refresh(login), {
    outcome: 'complete',
    calls: 2,
    fields: {
      internal_token: 'access-token-3',
      public_token: 'access-token-4',
      refresh_token: 'refresh-token-4',
      expires_at: clock.now() + 3_600_000
    }
  })
  t.deepEqual(idp.grants.slice(2), [
    { type: 'refresh', refreshToken: 'refresh-token-2', scope: 'data:read viewables:read' },
    { type: 'refresh', refreshToken: 'refresh-token-3', scope: 'viewables:read' }
  ])
})

for (const error of [...faults, new TypeError('odd')]) {
  test(`dual: if the request for the public token fails with "${error.message}", a refresh keeps the new internal token and refresh token`, async t => {
    const { mode, idp, clock } = setUpMode(dual)
    const login = await mode.exchangeCode(grant)
    const fields = Object.freeze(login.fields)
    clock.advanceSeconds(4000)
    idp.next({}, error)
    t.deepEqual(await mode.refresh({ fields }), {
      outcome: 'partial',
      calls: 2,
      error,
      state: {
        fields: { ...fields, internal_token: 'access-token-3', refresh_token: 'refresh-token-3' },
        internalExpiresAt: clock.now() + 3_600_000
      }
    })
  })
}

test('dual: after a partial refresh at a provider without rotation, the session keeps its refresh token and can complete the refresh', async t => {
  const { mode, idp } = setUpMode(dual, { rotates: false })
  const login = await mode.exchangeCode(grant)
  const { fields } = login
  idp.next({}, upstreamError())
  const refreshed = await mode.refresh(login)
  t.like(refreshed, { outcome: 'partial', state: { fields: { refresh_token: fields.refresh_token } } })
  if (refreshed.outcome !== 'partial') throw new Error(refreshed.outcome)
  const again = await mode.refresh(refreshed.state)
  t.like(again, { outcome: 'complete', fields: { refresh_token: fields.refresh_token } })
})

const names: readonly (readonly [userInfo: UserInfo, name: string])[] = [
  [{ firstName: 'Ada', lastName: 'Lovelace', name: 'Countess' }, 'Ada Lovelace'],
  [{ given_name: 'Ada', family_name: 'Lovelace', name: 'Countess' }, 'Ada Lovelace'],
  [{ firstName: 'Ada', family_name: 'Lovelace' }, 'Ada Lovelace'],
  [{ firstName: 'Ada', name: 'Countess' }, 'Ada'],
  [{ lastName: 'Lovelace' }, 'Lovelace'],
  [{ firstName: ' ', given_name: 'Ada', lastName: '', family_name: 'Lovelace ' }, 'Ada Lovelace'],
  [{ name: 'Ada Lovelace' }, 'Ada Lovelace'],
  [{ preferred_username: 'ada', userName: 'lovelace' }, 'ada'],
  [{ userName: 'lovelace', email: 'ada@mail.example' }, 'lovelace'],
  [{ email: 'ada@mail.example', sub: '7' }, 'ada@mail.example'],
  [{ name: '', email: '', sub: '7' }, '7']
]

for (const [userInfo, name] of names) {
  test(`dual: the user info ${JSON.stringify(userInfo)} gives the display name "${name}"`, t => {
    t.is(setUpMode(dual).mode.displayName(userInfo), name)
  })
}
