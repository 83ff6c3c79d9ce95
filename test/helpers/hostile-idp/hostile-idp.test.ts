import { createHash } from 'node:crypto'
import test, { type ExecutionContext } from 'ava'
import { createBrowser } from '../browser.js'
import { createClock } from '../clock.js'
import { createHostileIdp, faults, type HostileIdpOptions } from './index.js'

const callbackUrl = 'http://localhost:8080/api/auth/callback'
const verifier = 'v'.repeat(43)
const challenge = createHash('sha256').update(verifier).digest('base64url')

async function setUp(t: ExecutionContext, options: HostileIdpOptions = {}) {
  const idp = await createHostileIdp(t, { callbackUrl, ...options })
  const browser = createBrowser(t)
  const basic: Record<string, string> = { authorization: `Basic ${btoa(`${idp.clientId}:${idp.clientSecret}`)}` }
  const token = (form: Record<string, string>, headers = basic) =>
    browser.request('POST', idp.tokenEndpoint, { form, headers })
  return {
    idp,
    browser,
    token,
    async login(extra: Record<string, string> = {}) {
      const query = new URLSearchParams({
        client_id: idp.clientId,
        response_type: 'code',
        redirect_uri: callbackUrl,
        scope: 'data:read viewables:read',
        state: 's',
        code_challenge: challenge,
        code_challenge_method: 'S256',
        ...extra
      })
      const { headers, statusCode } = await browser.get(`${idp.authorizationEndpoint}?${query}`)
      return headers.location ?? String(statusCode)
    },
    exchangeCode: async (location: string) => (await token(codeForm(location))).json<Record<string, string>>()
  }
}

function codeForm(location: string, changes: Record<string, string> = {}): Record<string, string> {
  const code = new URL(location).searchParams.get('code') ?? ''
  return { grant_type: 'authorization_code', code, redirect_uri: callbackUrl, code_verifier: verifier, ...changes }
}

const refreshForm = (refreshToken: string | undefined, scope?: string) => ({
  grant_type: 'refresh_token',
  refresh_token: refreshToken ?? '',
  ...(scope !== undefined && { scope })
})

test('a code can be exchanged once, and a second attempt ends the grant', async t => {
  const { login, token, exchangeCode } = await setUp(t)
  const location = await login()
  const tokens = await exchangeCode(location)
  t.is(tokens.token_type, 'Bearer')
  t.is(tokens.access_token?.length, 1000)
  t.is((await token(codeForm(location))).json().error, 'invalid_grant')
  t.is((await token(refreshForm(tokens.refresh_token))).json().error, 'invalid_grant')
})

test('a code is refused with a wrong verifier, with another redirect_uri, and after five minutes', async t => {
  const clock = createClock()
  const { login, token } = await setUp(t, { now: clock.now })
  const wrong: readonly Record<string, string>[] = [
    { code_verifier: 'w'.repeat(43) },
    { redirect_uri: `${callbackUrl}/` },
    { code: 'unknown' }
  ]
  for (const changes of wrong) t.is((await token(codeForm(await login(), changes))).json().error, 'invalid_grant')
  const late = await login()
  clock.advanceSeconds(301)
  t.is((await token(codeForm(late))).json().error, 'invalid_grant')
})

test('a client that authenticates in two places, or in none, is refused', async t => {
  const { idp, login, token } = await setUp(t)
  const inBody = { client_id: idp.clientId, client_secret: idp.clientSecret }
  const location = await login()
  t.is((await token(codeForm(location), {})).statusCode, 401)
  t.is((await token(codeForm(location, inBody))).json().error, 'invalid_request')
  t.is(
    (await token(codeForm(location, { ...inBody, client_secret: 'wrong-secret' }), {})).json().error,
    'invalid_client'
  )
  t.is((await token(codeForm(location, inBody), {})).statusCode, 200)
})

test('refresh tokens rotate, and a second use of one is recorded and ends the grant', async t => {
  const { idp, login, token, exchangeCode } = await setUp(t)
  const first = await exchangeCode(await login())
  const second = (await token(refreshForm(first.refresh_token))).json<Record<string, string>>()
  t.true(idp.isAlive(second.refresh_token ?? ''))
  t.is((await token(refreshForm(first.refresh_token))).json().error, 'invalid_grant')
  t.deepEqual(idp.reuses, [first.refresh_token])
  t.false(idp.isAlive(second.refresh_token ?? ''))
})

test('a refresh may ask for a narrower scope and later for the whole scope of the login, but not for more', async t => {
  const { login, token, exchangeCode } = await setUp(t)
  let refreshToken: string | undefined = (await exchangeCode(await login())).refresh_token
  const refresh = async (scope?: string) => {
    const answer = (await token(refreshForm(refreshToken, scope))).json<Record<string, string>>()
    refreshToken = answer.refresh_token ?? refreshToken
    return answer.scope ?? answer.error
  }
  t.is(await refresh('viewables:read'), 'viewables:read')
  t.is(await refresh(), 'data:read viewables:read')
  t.is(await refresh('data:read data:write'), 'invalid_scope')
  t.is(await refresh('data:read'), 'data:read')
})

test('userinfo refuses an access token whose grant was revoked', async t => {
  const { idp, browser, login, exchangeCode } = await setUp(t)
  const tokens = await exchangeCode(await login())
  const profile = () =>
    browser.get(idp.userinfoEndpoint, { headers: { authorization: `Bearer ${tokens.access_token}` } })
  t.is((await profile()).json().name, 'Ada Lovelace')
  const headers = { authorization: `Basic ${btoa(`${idp.clientId}:${idp.clientSecret}`)}` }
  const form = { token: tokens.refresh_token ?? '', token_type_hint: 'refresh_token' }
  t.is((await browser.request('POST', idp.revocationEndpoint, { form, headers })).statusCode, 200)
  t.deepEqual(idp.revoked, [tokens.refresh_token])
  t.is((await profile()).statusCode, 401)
})

test('a refresh token stays valid if the connection is cut before the provider handles the request, but not if it is cut afterwards', async t => {
  const { idp, login, token, exchangeCode } = await setUp(t)
  const { refresh_token = '' } = await exchangeCode(await login())
  idp.fail('token', faults.reset('before'), faults.half(), faults.reset('after'))
  await t.throwsAsync(token(refreshForm(refresh_token)))
  t.true(idp.isAlive(refresh_token))
  await t.throwsAsync(token(refreshForm(refresh_token)), { code: 'ECONNRESET' })
  t.false(idp.isAlive(refresh_token))
  const newest = idp.issued.refreshTokens.at(-1)?.value ?? ''
  await t.throwsAsync(token(refreshForm(newest)), { code: 'ECONNRESET' })
  t.false(idp.isAlive(newest))
})

test('secrets() returns all codes and tokens that were issued, without the access tokens that have exactly the scope `except`', async t => {
  const { idp, login, token, exchangeCode } = await setUp(t)
  const location = await login()
  const wide = await exchangeCode(location)
  const narrow = (await token(refreshForm(wide.refresh_token, 'viewables:read'))).json<Record<string, string>>()
  const secrets = new Set(idp.secrets({ except: 'viewables:read' }))
  const code = new URL(location).searchParams.get('code') ?? ''
  for (const secret of [
    code,
    verifier,
    wide.access_token,
    wide.refresh_token,
    narrow.refresh_token,
    idp.clientSecret
  ]) {
    t.true(secrets.has(secret ?? ''))
  }
  t.false(secrets.has(narrow.access_token ?? ''))
})
