// Responses of real providers that deviate from the standards, in both modes: what users, operators and pages see.
import { parseEnv } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { load } from '../config/given.js'
import { discovered } from '../helpers/config.js'
import { createHostileIdp, type Fault, faults } from '../helpers/hostile-idp/index.js'
import { fencedBlocks } from '../helpers/markdown.js'
import { type ModeName, modes } from '../helpers/modes.js'
import { readText } from '../helpers/repository.js'
import {
  openCallback,
  signIn,
  startLogin,
  startTestServer,
  type TestServer,
  type TestServerOptions
} from '../helpers/server.js'
import { afterAnHour, authorize, followToCallback, guarded, parameter, withParameters } from './support.js'

const scopes = {
  scopes: ['openid', 'read', 'write'],
  internalTokenScopes: ['openid', 'read', 'write'],
  publicTokenScopes: ['read']
}

/** Starts a server with a discovery document, and signs nobody in. */
async function start(
  t: ExecutionContext,
  mode: ModeName,
  { platform, ...settings }: NonNullable<TestServerOptions['settings']> = {}
): Promise<TestServer> {
  const idp = await createHostileIdp(t, { callbackUrl: 'http://localhost:8080/api/auth/callback' })
  const withPlatform = { ...settings, platform: { ...discovered(idp), ...scopes, ...platform } }
  return startTestServer(t, { mode, idp, settings: withPlatform })
}

/** The first token response of a login, and the scopes of the warning. */
const tokenResponses: readonly (readonly [what: string, fault: Fault, missing?: string])[] = [
  ['Google: the user unticked a scope', faults.change({ scope: 'openid read' }), 'write'],
  ['GitHub: commas', faults.change({ scope: 'openid,read,write' })],
  ['Twitch: a list', faults.change({ scope: ['openid', 'read', 'write'] })],
  ['GitHub Apps: an empty scope', faults.change({ scope: '' })],
  ['Azure AD B2C: digits', faults.change({ expires_in: '3599' })],
  ['GitHub: no expires_in', faults.change({ expires_in: undefined })],
  ['Apigee: BearerToken', faults.change({ token_type: 'BearerToken' })],
  ['a provider with the status 201', ({ process, send }) => send({ ...process(), status: 201 })]
]

for (const mode of modes) {
  for (const [what, fault, missing] of tokenResponses) {
    test(`${mode}: a login succeeds with the token response of ${what}`, async t => {
      const { browser, idp, logs } = await start(t, mode)
      idp.fail('token', fault)
      const callbackUrl = await startLogin(browser)
      t.is((await openCallback(browser, callbackUrl)).statusCode, 302)
      t.is((await browser.fetch(guarded)).statusCode, 200)
      t.is((await openCallback(browser, callbackUrl)).statusCode, 302)
      const [warning, ...more] = logs.all('scopes_missing')
      t.deepEqual([warning?.scopes, more], [missing, []])
    })
  }

  test(`${mode}: if nothing was granted, the page says that consent is missing, and the refresh token is revoked`, async t => {
    const { browser, idp } = await start(t, mode)
    idp.fail('token', faults.change({ scope: 'other' }))
    const response = await openCallback(browser, await startLogin(browser))
    t.is(response.statusCode, 403)
    t.true(response.text().includes('Consent is missing'))
    t.true(response.text().includes('consent_required'))
    t.deepEqual(idp.revoked, [idp.issued.refreshTokens[0]?.value])
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 401)
  })
}

const expired = (callbackUrl: string) =>
  withParameters(callbackUrl, {
    code: undefined,
    error: 'temporarily_unavailable',
    error_description: 'authentication_expired'
  })

test('Keycloak: a login whose page has expired starts once more by itself, with the same prompt and path, and not twice', async t => {
  const { browser, idp, logs, newBrowser } = await start(t, 'single')
  const first = await authorize(browser, '/api/auth/login?prompt=login&return_to=/b')
  t.is((await openCallback(newBrowser(), expired(first))).statusCode, 400, 'another browser')
  const again = await openCallback(browser, expired(first))
  const second = await followToCallback(browser, again)
  t.is(idp.requestsTo('authorize').at(-1)?.query.prompt, 'login')
  t.is((await openCallback(browser, expired(second))).statusCode, 503)
  t.is((await openCallback(browser, second)).headers.location, '/b')
  t.is(logs.all('login_restarted').length, 1)
})

test('a callback with form_post is refused with a sentence that says what to set', async t => {
  const { browser, idp } = await start(t, 'single')
  const response = await browser.request('POST', '/api/auth/callback', { form: { code: 'a', state: 'b' } })
  t.is(response.statusCode, 405)
  t.regex(response.text(), /response mode of the client at the provider to query/)
  t.is(idp.tokenRequests.length, 0)
})

test('parameters of the operator are sent at the login and at the logout, and an endpoint keeps those of its URL', async t => {
  const { browser, idp } = await start(t, 'single', {
    logout: { revoke: false, idp: true },
    platform: {
      authorizationParams: { access_type: 'offline', p: 'x' },
      logoutParams: { logout_uri: 'https://a.example/' }
    }
  })
  idp.discovery = document => ({ ...document, authorization_endpoint: `${idp.authorizationEndpoint}?p=own` })
  await signIn(browser)
  const { query } = idp.requestsTo('authorize')[0] ?? {}
  t.like(query, { access_type: 'offline', p: 'own', client_id: idp.clientId })
  const { location = '' } = (await browser.navigate('/api/auth/logout')).headers
  t.is(parameter(location, 'logout_uri'), 'https://a.example/')
  t.is(parameter(location, 'client_id'), idp.clientId)
})

test('with empty scopes, neither the login nor a refresh has a scope', async t => {
  const server = await start(t, 'single', { platform: { scopes: [] } })
  const { browser, idp } = server
  idp.settings.quirks = { needsNoScope: true }
  await signIn(browser)
  t.is((await afterAnHour(server)).statusCode, 200)
  t.is(idp.requestsTo('authorize')[0]?.query.scope, undefined)
  t.deepEqual(
    idp.tokenRequests.map(({ form }) => form.scope),
    [undefined, undefined]
  )
})

for (const mode of modes) {
  test(`${mode}: the newest ID token that fits is the hint of a logout, and the URL has at most 2,000 characters`, async t => {
    const hintAfter = async (groups: readonly number[]) => {
      const { browser, idp, clock } = await start(t, mode, { logout: { revoke: false, idp: true } })
      idp.settings.quirks = { idTokenOnRefresh: true }
      for (const [index, count] of groups.entries()) {
        idp.settings.idTokenClaims = claims => ({ ...claims, groups: Array.from({ length: count }, () => 'group') })
        if (index === 0) await signIn(browser)
        else t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
        clock.advanceSeconds(4000)
      }
      const { location = '' } = (await browser.navigate('/api/auth/logout')).headers
      t.true(location.length <= 2000)
      const { searchParams } = new URL(location)
      t.is(searchParams.get('client_id'), idp.clientId)
      const hint = searchParams.get('id_token_hint')
      return hint === null ? undefined : idp.issued.idTokens.indexOf(hint)
    }
    const ofLogin = mode === 'dual' ? 1 : 0
    t.is(await hintAfter([1]), ofLogin)
    t.is(await hintAfter([199]), undefined)
    const newest = await hintAfter([1, 1])
    t.true(newest !== undefined && newest > ofLogin)
    t.is(await hintAfter([1, 199]), ofLogin)
  })

  test(`${mode}: with all endpoints configured, logins, refreshes and logouts work while discovery does not`, async t => {
    const { browser, idp, clock, logs } = await start(t, mode, {
      logout: { revoke: false, idp: true },
      platform: { userinfoEndpoint: undefined }
    })
    const { authorizationEndpoint, tokenEndpoint, userinfoEndpoint, endSessionEndpoint } = idp
    const all = { authorizationEndpoint, tokenEndpoint, userinfoEndpoint, endSessionEndpoint }
    const other = await startTestServer(t, {
      mode,
      idp,
      clock,
      settings: { logout: { revoke: false, idp: true }, platform: { ...discovered(idp), ...scopes, ...all } }
    })
    idp.failWhen('discovery', () => faults.status(503))
    t.is((await browser.navigate('/api/auth/login')).statusCode, 502, 'unknown endpoints are never those of APS')
    await signIn(other.browser)
    clock.advanceSeconds(4000)
    t.is((await other.browser.fetch('/api/auth/profile')).statusCode, 200)
    const { location = '' } = (await other.browser.navigate('/api/auth/logout')).headers
    t.true(location.startsWith(`${endSessionEndpoint}?`))
    t.true(new URL(location).searchParams.has('id_token_hint'))
    t.is(logs.all('endpoint_invalid').length, 0)
  })

  test(`${mode}: endpoints of the discovery document that cannot be used are off with one warning each`, async t => {
    const { browser, idp, logs } = await start(t, mode)
    idp.discovery = document => ({
      ...document,
      revocation_endpoint: null,
      end_session_endpoint: '',
      userinfo_endpoint: 'http://idp.example/userinfo'
    })
    await signIn(browser)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.is(logs.all('endpoint_invalid').length, 3)
  })
}

const jwt = (claims: object) =>
  [{ alg: 'RS256', kid: 'k' }, claims, 'signature']
    .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')

/** What differs from the responses of the hostile provider. Tokens that are missing here are those of the hostile provider. */
interface Imitation {
  /** The endpoints that its discovery document does not have. */
  readonly without?: readonly string[]
  /** Members of the token response to a login and to a refresh. A member of undefined is missing. */
  readonly login: Record<string, unknown>
  readonly refresh: Record<string, unknown>
  readonly userInfo: Record<string, unknown>
  /** Parameters of the authorization request, and of the logout if it leads to the provider. */
  readonly authorization?: Record<string, string>
  readonly endSession?: Record<string, string>
}

const person = { sub: '248289761001', name: 'Jane Doe', email: 'jane@example.com', email_verified: true }
const googleScopes =
  'https://www.googleapis.com/auth/userinfo.email openid https://www.googleapis.com/auth/userinfo.profile'
const oktaToken = { scp: ['offline_access', 'openid', 'profile', 'email'], cid: 'a', uid: 'b' }
const oktaAnswer = { access_token: jwt(oktaToken), expires_in: 3600, scope: 'offline_access profile openid email' }
const cognitoToken = { token_use: 'access', scope: 'openid profile email', username: 'jane' }
const cognitoAnswer = { access_token: jwt(cognitoToken), expires_in: 3600, scope: undefined }
const gitlabAnswer = {
  token_type: 'bearer',
  expires_in: 7200,
  scope: 'openid profile email',
  created_at: 1_800_000_000
}
const authentikAnswer = { access_token: jwt({ scope: 'openid' }), expires_in: 300 }
const zitadelAnswer = { expires_in: 43_199, scope: undefined }

/** By the name of the page in docs/reference/providers/. */
const imitations: Readonly<Record<string, Imitation>> = {
  google: {
    without: ['end_session_endpoint'],
    login: { expires_in: 3599, scope: googleScopes },
    refresh: { expires_in: 3599, scope: googleScopes, refresh_token: undefined },
    userInfo: { ...person, given_name: 'Jane', picture: 'https://lh3.example/photo' },
    authorization: { access_type: 'offline', prompt: 'consent' }
  },
  okta: {
    login: oktaAnswer,
    refresh: oktaAnswer,
    userInfo: { ...person, zoneinfo: 'America/Los_Angeles', updated_at: 1_700_000_000 },
    endSession: { post_logout_redirect_uri: 'http://localhost:8080/' }
  },
  cognito: {
    login: cognitoAnswer,
    refresh: { ...cognitoAnswer, refresh_token: undefined },
    userInfo: { ...person, email_verified: 'true', username: 'jane' },
    endSession: { client_id: 'test-client', logout_uri: 'https://app.example.com/' }
  },
  gitlab: {
    without: ['end_session_endpoint'],
    login: gitlabAnswer,
    refresh: gitlabAnswer,
    userInfo: { ...person, nickname: 'jane', profile: 'https://gitlab.com/jane', groups: ['our-team'] }
  },
  authentik: {
    login: { ...authentikAnswer, scope: 'openid profile email offline_access' },
    refresh: { ...authentikAnswer, scope: 'openid profile email offline_access' },
    userInfo: { ...person, preferred_username: 'jane', nickname: 'jane', groups: ['editors'] }
  },
  zitadel: {
    login: zitadelAnswer,
    refresh: zitadelAnswer,
    userInfo: { ...person, locale: 'en', preferred_username: 'jane@example.com', updated_at: 1_700_000_000 },
    endSession: { post_logout_redirect_uri: 'http://localhost:8080/', client_id: 'test-client' }
  }
}

/** Loads the settings of a page in docs/reference/providers/, except the placeholders. */
async function settingsOf(t: ExecutionContext, page: string) {
  const [block] = fencedBlocks(readText(`docs/reference/providers/${page}.md`))
  const placeholder = /^PLATFORM_CLIENT_(ID|SECRET)$|^SERVER_SESSION_SECRET$|^PLATFORM_CALLBACK_URL$/
  const variables = Object.entries(parseEnv(block?.text ?? '')).filter(([name]) => !placeholder.test(name))
  return (await load(t, { env: Object.fromEntries(variables) })).config
}

for (const [page, { without = [], login, refresh, userInfo, authorization, endSession }] of Object.entries(
  imitations
)) {
  test(`with the settings of docs/reference/providers/${page}.md, a login, a refresh and a logout work with its responses`, async t => {
    const { mode, logout, platform } = await settingsOf(t, page)
    const { scopes, authorizationParams, logoutParams, clientAuthMethod } = platform
    const settings = { scopes, authorizationParams, logoutParams, clientAuthMethod }
    const { browser, idp, clock, logs } = await start(t, mode, { logout, platform: settings })
    idp.discovery = document => Object.fromEntries(Object.entries(document).filter(([name]) => !without.includes(name)))
    Object.assign(idp.settings, { profile: userInfo, quirks: { idTokenOnRefresh: true } })
    idp.failWhen('token', ({ form }) => faults.change(form.grant_type === 'refresh_token' ? refresh : login))
    // The access tokens of this table are not those of the hostile provider.
    idp.failWhen('userinfo', () => faults.answer({ status: 200, body: userInfo }))

    await signIn(browser)
    if (authorization) t.like(idp.requestsTo('authorize')[0]?.query, authorization)
    t.is((await browser.fetch('/api/auth/profile')).json().name, 'Jane Doe')
    clock.advanceSeconds(50_000)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.deepEqual(
      idp.tokenRequests.map(({ form }) => form.grant_type),
      ['authorization_code', 'refresh_token']
    )
    t.deepEqual(logs.all('scopes_missing'), [])

    const { location = '' } = (await browser.navigate('/api/auth/logout')).headers
    t.is(location.startsWith(idp.issuer), endSession !== undefined)
    if (endSession) t.like(Object.fromEntries(new URL(location).searchParams), endSession)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 401)
  })
}
