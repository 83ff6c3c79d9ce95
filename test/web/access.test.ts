// The setting `access.allow`: who can sign in, what the log says about a rejected account, and the revocation of its refresh
// token.
import test, { type ExecutionContext } from 'ava'
import type { Browser } from '../helpers/browser.js'
import type { TestSettings } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { faults } from '../helpers/hostile-idp/index.js'
import { modes } from '../helpers/modes.js'
import { openCallback, signIn, startLogin, startTestServer, type TestServer } from '../helpers/server.js'
import { afterAnHour, guarded, sessionCookies, sessionHeader, startDiscovered } from './support.js'

const address = 'ada@example.com'

async function startGuarded(
  t: ExecutionContext,
  mode: 'single' | 'dual' = 'single',
  platform: NonNullable<TestSettings['platform']> = {}
) {
  const settings = { access: { allow: [address, '@team.example'] }, platform }
  const server = await startTestServer(t, { mode, settings })
  server.idp.settings.profile = { ...server.idp.settings.profile, email: address, email_verified: true }
  return server
}

const withOpenid = {
  scopes: ['openid', 'email', 'data:read'],
  internalTokenScopes: ['openid', 'email', 'data:read'],
  publicTokenScopes: ['data:read']
}
const withoutUserInfo = { ...withOpenid, userinfoEndpoint: 'none' }

async function tryToSignIn(browser: Browser) {
  return openCallback(browser, await startLogin(browser))
}

/** The user info requests with which the first login of dual mode tests if the internal token survives the second token request. */
const testRequests = { single: 0, dual: 2 }

/** Asserts that nobody is signed in, and that exactly one refresh token was revoked. */
async function assertSignedOut(t: ExecutionContext, { browser, idp }: Pick<TestServer, 'browser' | 'idp'>) {
  t.deepEqual(sessionCookies(browser), [])
  await eventually(() => idp.revoked.length > 0)
  t.is(idp.requestsTo('revoke').length, 1)
}

/** Resolves when the newest refresh token was revoked. */
const newestRevoked = ({ idp }: Pick<TestServer, 'idp'>) =>
  eventually(() => idp.revoked.includes(idp.issued.refreshTokens.at(-1)?.value ?? ''))

for (const mode of modes) {
  for (const [source, platform, userInfoRequests] of [
    ['user info', {}, 1],
    ['user info about the user of the ID token', withOpenid, 1],
    ['ID token', withoutUserInfo, 0]
  ] as const) {
    test(`${mode}: an account whose email address in the ${source} is on the access list can sign in`, async t => {
      const { browser, idp } = await startGuarded(t, mode, platform)
      if (userInfoRequests === 0) {
        idp.settings.idTokenClaims = claims => ({ ...claims, email: address, email_verified: true })
      }
      await signIn(browser)
      const others = platform === withOpenid ? testRequests[mode] : 0
      await eventually(() => idp.requestsTo('userinfo').length === userInfoRequests + others)
      t.is((await browser.get(guarded)).statusCode, 200)
      t.deepEqual(idp.requestsTo('revoke'), [])
    })
  }

  for (const source of ['user info', 'ID token'] as const) {
    for (const [what, email, access] of [
      ['is not listed', { email: 'mallory@evil.example', email_verified: true }, 'not_listed'],
      ['is not verified', { email: address }, 'not_verified'],
      ['is missing', {}, 'no_email']
    ] as const) {
      test(`${mode}: an account whose email address in the ${source} ${what} gets an error page and no session, and its refresh token is revoked`, async t => {
        const server = await startGuarded(t, mode, source === 'user info' ? {} : withoutUserInfo)
        const { browser, idp, logs } = server
        if (source === 'user info') idp.settings.profile = { sub: 'user-2', name: 'Mallory', ...email }
        else idp.settings.idTokenClaims = claims => ({ ...claims, ...email })
        const response = await tryToSignIn(browser)
        t.is(response.statusCode, 403)
        t.regex(response.text(), /Your account is not allowed to sign in here/)
        // Without this prompt, the provider would sign in the same account again.
        t.regex(response.text(), /href="\/api\/auth\/login\?prompt=login"/)
        await assertSignedOut(t, server)
        const [line, ...more] = logs.all('login_failed')
        t.like(line, { reason: 'account_not_allowed', access })
        t.deepEqual(more, [])
        t.notRegex(JSON.stringify(logs.entries), /mallory|ada@example/)
      })
    }
  }

  for (const [what, sub] of [
    ['is about another user than the ID token', 'user-2'],
    ['does not say which user it is about', undefined]
  ] as const) {
    test(`${mode}: if the user info ${what}, nobody is signed in, and the refresh token is revoked`, async t => {
      const server = await startGuarded(t, mode, withOpenid)
      const { browser, idp, logs } = server
      idp.settings.idTokenClaims = claims => ({ ...claims, sub: 'user-1' })
      idp.settings.profile = { sub, email: address, email_verified: true }
      t.is((await tryToSignIn(browser)).statusCode, 502)
      await assertSignedOut(t, server)
      const failure = JSON.stringify(logs.first('request_failed'))
      t.regex(failure, /its sub is not that of the login/)
      t.notRegex(failure, /user-2|ada@/)
    })
  }

  test(`${mode}: if the provider turns out to have neither user info nor an ID token, a sign-in fails and the log says why`, async t => {
    const server = await startDiscovered(t, { mode, settings: { access: { allow: [address] } } })
    server.idp.discovery = document => ({ ...document, userinfo_endpoint: undefined })
    t.is((await tryToSignIn(server.browser)).statusCode, 502)
    await assertSignedOut(t, server)
    const failure = JSON.stringify(server.logs.first('request_failed'))
    t.regex(failure, /no user info endpoint.*add openid and email to the scopes/)
  })
}

test('a rejected account gets the same page again if its callback is repeated, and the existing session of the browser stays', async t => {
  const { browser, idp } = await startGuarded(t)
  await signIn(browser)
  const before = sessionHeader(browser)
  idp.settings.profile = { email: 'mallory@evil.example', email_verified: true }
  const back = await startLogin(browser)
  t.is((await openCallback(browser, back)).statusCode, 403)
  const asked = idp.requests.length
  t.is((await openCallback(browser, back)).statusCode, 403)
  t.is(idp.requests.length, asked, 'the provider is not called again')
  t.is(sessionHeader(browser), before)
  t.is((await browser.get(guarded)).statusCode, 200)
})

for (const [what, fault, status, retryAfter] of [
  ['responds with 429', faults.tooManyRequests(7), 503, '7'],
  ['responds with 503', faults.status(503), 503, '5'],
  ['responds with 500', faults.status(500), 502, undefined],
  ['responds with HTML', faults.html(), 502, undefined],
  ['rejects the token', faults.error('invalid_token', 401), 502, undefined],
  ['breaks the connection', faults.reset(), 504, undefined]
] as const) {
  test(`if the user info endpoint ${what}, nobody is signed in, and the refresh token is revoked`, async t => {
    const server = await startGuarded(t)
    server.idp.fail('userinfo', fault, fault)
    const { statusCode, headers } = await tryToSignIn(server.browser)
    t.deepEqual([statusCode, headers['retry-after']], [status, retryAfter])
    await assertSignedOut(t, server)
  })
}

/** Starts a server whose list has a group. The provider puts `groups` into each ID token, also at a refresh. */
async function startWithGroups(
  t: ExecutionContext,
  mode: 'single' | 'dual',
  platform: NonNullable<TestSettings['platform']> = withOpenid
) {
  const access = { allow: ['groups=admins', '@team.example'] }
  const server = await startTestServer(t, { mode, settings: { access, platform } })
  const { idp } = server
  const account = { groups: ['admins'] as unknown }
  idp.settings.quirks = { idTokenOnRefresh: true }
  idp.settings.idTokenClaims = claims => ({ ...claims, ...account })
  const statusAfterAnHour = async () => (await afterAnHour(server)).statusCode
  return { ...server, account, statusAfterAnHour }
}

for (const mode of modes) {
  test(`${mode}: an account in a listed group can sign in without a request for user info, and stays signed in`, async t => {
    const { browser, idp, statusAfterAnHour } = await startWithGroups(t, mode)
    await signIn(browser)
    t.is(await statusAfterAnHour(), 200)
    // The only other request is that of the profile.
    t.is(idp.requestsTo('userinfo').length, 1 + testRequests[mode])
    t.deepEqual(idp.revoked, [])
  })

  for (const [what, platform] of [
    ['with a user info endpoint', withOpenid],
    ['without a user info endpoint', withoutUserInfo]
  ] as const) {
    test(`${mode}: ${what}, a user who has lost the right is signed out at the next refresh, and the refresh token is revoked`, async t => {
      const server = await startWithGroups(t, mode, platform)
      const { browser, clock, account, logs } = server
      await signIn(browser)
      const copy = browser.clone()
      account.groups = ['staff']
      t.is((await browser.fetch(guarded)).statusCode, 200)
      clock.advanceSeconds(3600)
      const response = await browser.navigate(guarded)
      t.is(response.statusCode, 403)
      t.regex(response.text(), /Your account is not allowed to sign in here/)
      t.deepEqual(sessionCookies(browser), [])
      t.is((await copy.fetch(guarded)).json().error, 'account_not_allowed')
      t.is((await copy.fetch(guarded)).statusCode, 401, 'its cookies were removed, too')
      await newestRevoked(server)
      t.like(logs.first('account_no_longer_allowed'), { access: 'no_email' })
    })
  }

  test(`${mode}: an account that is listed by its user info alone stays signed in, and is signed out when that changes`, async t => {
    const { browser, idp, account, statusAfterAnHour } = await startWithGroups(t, mode)
    account.groups = undefined
    idp.settings.profile = { ...idp.settings.profile, groups: 'admins' }
    await signIn(browser)
    t.is(await statusAfterAnHour(), 200)
    t.is(await statusAfterAnHour(), 200)
    idp.settings.profile = { sub: 'user-1', email: 'ada@team.example', email_verified: true }
    t.is(await statusAfterAnHour(), 200)
    idp.settings.profile = { sub: 'user-1', email: 'ada@team.example' }
    t.is(await statusAfterAnHour(), 403)
    t.deepEqual(idp.reuses, [])
  })

  test(`${mode}: if the user info cannot be read at a refresh, the session continues, and the log says so`, async t => {
    const { browser, idp, account, logs, statusAfterAnHour } = await startWithGroups(t, mode)
    await signIn(browser)
    account.groups = []
    for (const answer of [
      faults.status(500),
      faults.reset(),
      faults.answer({ status: 200, body: { sub: 'user-2' } })
    ]) {
      idp.failWhen('userinfo', () => answer)
      t.not(await statusAfterAnHour(), 401)
    }
    idp.heal()
    t.is((await browser.fetch(guarded)).statusCode, 200)
    t.is(logs.all('account_not_checked').length, 3)
    t.is(await statusAfterAnHour(), 403)
    t.deepEqual(idp.reuses, [])
  })

  const refused = faults.error('invalid_token', 401)

  test(`${mode}: if user info refuses the access token, a user whose ID token alone allowed the login is signed out when the claim is gone`, async t => {
    const server = await startWithGroups(t, mode)
    const { browser, idp, account, logs, statusAfterAnHour } = server
    idp.failWhen('userinfo', () => refused)
    await signIn(browser)
    t.is(await statusAfterAnHour(), 502)
    account.groups = undefined
    idp.settings.quirks = {}
    t.is(await statusAfterAnHour(), 502, 'without an ID token, the session stays')
    idp.settings.quirks = { idTokenOnRefresh: true }
    t.is(await statusAfterAnHour(), 403)
    t.like(logs.first('account_no_longer_allowed'), { missing_claims: ['groups'] })
    await newestRevoked(server)
  })

  test(`${mode}: if user info refuses the access token at a refresh, a user whom it has allowed stays signed in, and the log says so`, async t => {
    const { browser, idp, account, logs, statusAfterAnHour } = await startWithGroups(t, mode)
    account.groups = undefined
    idp.settings.profile = { ...idp.settings.profile, groups: 'admins' }
    await signIn(browser)
    idp.failWhen('userinfo', () => refused)
    t.is(await statusAfterAnHour(), 502)
    t.is(logs.all('account_not_checked').length, 1)
    idp.heal()
    t.is((await browser.fetch(guarded)).statusCode, 200)
  })

  test(`${mode}: at a refresh without an ID token, the user info decides about claims that it has`, async t => {
    const server = await startWithGroups(t, mode)
    const { browser, idp, logs, statusAfterAnHour } = server
    idp.settings.quirks = {}
    await signIn(browser)
    const email = { email: 'ada@evil.example', email_verified: true }
    idp.settings.profile = { ...idp.settings.profile, ...email, groups: ['admins'] }
    t.is(await statusAfterAnHour(), 200)
    idp.settings.profile = { ...idp.settings.profile, groups: ['staff'] }
    t.is(await statusAfterAnHour(), 403)
    t.like(logs.first('account_no_longer_allowed'), { access: 'not_listed' })
    t.deepEqual(logs.all('account_not_checked'), [])
    await newestRevoked(server)
  })

  for (const [what, platform, reason] of [
    ['lacks the claims of the ID token', withOpenid, /user info lacks claims/],
    ['does not exist', withoutUserInfo, /no user info endpoint/]
  ] as const) {
    test(`${mode}: if there is no ID token at a refresh and the user info ${what}, the session stays, with one warning for each process`, async t => {
      const { browser, idp, logs, statusAfterAnHour } = await startWithGroups(t, mode, platform)
      idp.settings.quirks = {}
      await signIn(browser)
      for (let hours = 0; hours < 3; hours++) t.is(await statusAfterAnHour(), 200)
      const lines = logs.all('account_not_checked')
      t.deepEqual(
        lines.map(({ level }) => level),
        ['warn', 'debug', 'debug']
      )
      t.regex(JSON.stringify(lines[0]), reason)
    })
  }

  test(`${mode}: a denied login ends the session that the browser has of the same user, and its copies`, async t => {
    const { browser, idp, account } = await startWithGroups(t, mode)
    await signIn(browser)
    const copy = browser.clone()
    const old = idp.issued.refreshTokens.at(-1)?.value ?? ''
    account.groups = ['staff']
    t.is((await tryToSignIn(browser)).statusCode, 403)
    for (const one of [browser, copy]) t.is((await one.fetch(guarded)).statusCode, 403)
    await eventually(() => idp.revoked.includes(old))
    t.is(idp.revoked.length, 2)
  })
}

test('a denied login keeps the session of another user, or of another issuer', async t => {
  const { browser, idp, account } = await startWithGroups(t, 'single')
  await signIn(browser)
  account.groups = ['staff']
  for (const other of [{ sub: 'user-2' }, { iss: 'https://other.example' }]) {
    idp.settings.idTokenClaims = claims => ({ ...claims, ...account, ...other })
    idp.settings.profile = { sub: 'user-1', ...other }
    t.is((await tryToSignIn(browser)).statusCode, 403)
    idp.settings.profile = { sub: 'user-1' }
    t.is((await browser.fetch(guarded)).statusCode, 200)
  }
})

test('a login that is not strong enough keeps the session that the browser has of the same user', async t => {
  const { browser, token } = await startDemanding(t, 'single')
  await signIn(browser)
  token.acr = '0'
  t.is((await tryToSignIn(browser)).statusCode, 403)
  t.is((await browser.fetch(guarded)).statusCode, 200)
})

test('a claim that is one string is not split, and the log line of the denial says that it is one', async t => {
  const { browser, logs, account } = await startWithGroups(t, 'single')
  for (const groups of ['a,admins', 'admins users', 'a; admins']) {
    account.groups = groups
    t.is((await tryToSignIn(browser)).statusCode, 403)
    t.like(logs.all('login_failed').at(-1), { access: 'no_email', string_claims: ['groups'] })
  }
  account.groups = 'badmins,users'
  t.is((await tryToSignIn(browser)).statusCode, 403)
  t.is(logs.all('login_failed').at(-1)?.string_claims, undefined)
})

// The settings `access.acr` and `max_age`: how and when a user has signed in at the provider.

/** Starts a server that requires the level `mfa`, and an authentication within the last hour. */
async function startDemanding(t: ExecutionContext, mode: 'single' | 'dual') {
  const authorizationParams = { acr_values: 'mfa', max_age: '3600' }
  const settings = { access: { allow: ['*'], acr: ['mfa', 'hwk'] }, platform: { ...withOpenid, authorizationParams } }
  const server = await startTestServer(t, { mode, settings })
  const seconds = Math.floor(server.clock.now() / 1000)
  const token: { acr: unknown; auth_time: unknown } = { acr: 'mfa', auth_time: seconds }
  server.idp.settings.idTokenClaims = claims => ({ ...claims, ...token })
  server.idp.settings.quirks = { idTokenOnRefresh: true }
  return { ...server, token, seconds }
}

for (const mode of modes) {
  test(`${mode}: a user who has not signed in with a required level, or not recently, gets a page that says so, and no session`, async t => {
    const server = await startDemanding(t, mode)
    const { browser, idp, logs, token, seconds } = server
    const right = { ...token }
    for (const [changes, access, found, required] of [
      [{ acr: '0' }, 'acr', '0', 'mfa hwk'],
      [{ acr: undefined }, 'acr', undefined, 'mfa hwk'],
      [{ acr: 'MFA' }, 'acr', 'MFA', 'mfa hwk'],
      [{ acr: ['mfa'] }, 'acr', '["mfa"]', 'mfa hwk'],
      [{ auth_time: seconds - 3661 }, 'auth_time', '3661', '3600'],
      [{ auth_time: undefined }, 'auth_time', undefined, '3600'],
      [{ auth_time: String(seconds) }, 'auth_time', undefined, '3600']
    ] as const) {
      Object.assign(token, right, changes)
      const response = await tryToSignIn(browser)
      t.is(response.statusCode, 403)
      t.regex(response.text(), /Another way of signing in is needed/)
      t.regex(response.text(), /insufficient_user_authentication/)
      t.regex(response.text(), /href="\/api\/auth\/login\?prompt=login"/)
      t.deepEqual(sessionCookies(browser), [])
      await newestRevoked(server)
      const line = logs.all('login_failed').at(-1)
      t.like(line, { level: 'warn', reason: 'insufficient_user_authentication', access, required })
      t.is(line?.found, found)
    }
    t.deepEqual(idp.requestsTo('authorize').at(-1)?.query.max_age, '3600')
    for (const changes of [{ acr: 'hwk' }, { auth_time: seconds - 3660 }, { auth_time: seconds + 60 }]) {
      Object.assign(token, right, changes)
      await signIn(browser)
      t.is((await browser.get(guarded)).statusCode, 200)
    }
  })

  test(`${mode}: a level that is too low at a refresh ends the session, and no level and an old authentication do not`, async t => {
    const server = await startDemanding(t, mode)
    const { browser, logs, token } = server
    await signIn(browser)
    token.acr = undefined
    t.is((await afterAnHour(server)).statusCode, 200)
    t.is((await afterAnHour(server)).statusCode, 200)
    token.acr = '0'
    const response = await afterAnHour(server)
    t.is(response.statusCode, 401)
    t.deepEqual(sessionCookies(browser), [])
    t.like(logs.first('account_no_longer_allowed'), { access: 'acr', required: 'mfa hwk', found: '0' })
    t.like(logs.all('refresh_failed').at(-1), { reason: 'insufficient_user_authentication' })
    await newestRevoked(server)
  })
}

for (const mode of modes) {
  test(`${mode}: an ID token at a refresh that proves nothing is ignored with one warning for each cause, and the access list takes it for absent`, async t => {
    const { browser, idp, logs, account, statusAfterAnHour } = await startWithGroups(t, mode)
    await signIn(browser)
    const { idTokenClaims } = idp.settings
    idp.settings.profile = { ...idp.settings.profile, groups: 'admins' }
    account.groups = ['staff']
    idp.settings.idTokenClaims = claims => ({ ...idTokenClaims(claims), aud: ['test-client', 'another-client'] })
    for (let hours = 0; hours < 2; hours++) t.is(await statusAfterAnHour(), 200)
    idp.settings.idTokenClaims = claims => ({ ...idTokenClaims(claims), aud: 'another-client' })
    t.is(await statusAfterAnHour(), 200)
    const lines = logs.all('id_token_ignored')
    t.deepEqual([...new Set(lines.map(({ err }) => String((err as Error).message)))].length, 2)
    t.is(lines.filter(({ level }) => level === 'warn').length, 2)
    idp.settings.profile = { ...idp.settings.profile, email: 'a@b.example', email_verified: true, groups: 'staff' }
    t.is(await statusAfterAnHour(), 403)
    t.deepEqual(idp.reuses, [])
  })

  test(`${mode}: an ID token of another user at a refresh ends the session, although it proves nothing else`, async t => {
    const { browser, idp, account, statusAfterAnHour } = await startWithGroups(t, mode)
    await signIn(browser)
    idp.settings.idTokenClaims = claims => ({ ...claims, ...account, sub: 'user-2', aud: 'another-client' })
    t.is(await statusAfterAnHour(), 401)
  })
}
