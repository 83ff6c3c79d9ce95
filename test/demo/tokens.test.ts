import { createPublicKey, type JsonWebKey, verify } from 'node:crypto'
import test from 'ava'
import { createClock } from '../helpers/clock.js'
import { claimsOf, logIn, refresh, start, userInfo } from './setup.js'

const invalidGrant = { status: 400, body: { error: 'invalid_grant' } }

test("an access token is a JWT with the size and the claims of the platform's tokens, signed with the published key", async t => {
  const demo = await start(t)
  const before = Math.floor(Date.now() / 1000)
  const { access_token: accessToken } = await logIn(t, demo, { scope: 'data:read account:read account:write' })
  t.true(accessToken.length > 750 && accessToken.length < 1100, `${accessToken.length} characters`)

  const claims = claimsOf(accessToken)
  t.deepEqual(claims.scope, ['data:read', 'account:read', 'account:write'])
  t.is(claims.client_id, demo.clientId)
  t.is(claims.iss, demo.issuer)
  t.is(claims.aud, 'https://platform.example')
  t.regex(String(claims.userid), /^[A-Z0-9]{12}$/)
  t.regex(String(claims.jti), /^[\w-]{64}$/)
  t.true(Number(claims.iat) >= before && Number(claims.exp) === Number(claims.iat) + 3599)

  const { keys } = (await (await fetch(`${demo.issuer}/authentication/v2/keys`)).json()) as { keys: JsonWebKey[] }
  t.is(keys.length, 1)
  t.deepEqual(Object.keys(keys[0] ?? {}).sort(), ['alg', 'e', 'kid', 'kty', 'n', 'use'])
  const [header, payload, signature = ''] = accessToken.split('.')
  const key = createPublicKey({ key: keys[0] ?? {}, format: 'jwk' })
  t.true(verify('sha256', Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url')))
})

test('every refresh returns a new refresh token, and a second use of one ends the grant and revokes its newest token too', async t => {
  const demo = await start(t)
  const { refresh_token: first } = await logIn(t, demo)
  const { refresh_token: second } = (await refresh(demo, first)).body
  const { refresh_token: third } = (await refresh(demo, second)).body
  t.is(new Set([first, second, third]).size, 3)
  t.regex(third, /^[\w-]{42}$/)
  t.like(demo.calls, { refreshToken: 2, reusedRefreshToken: 0 })
  t.like(await refresh(demo, first), invalidGrant)
  t.like(await refresh(demo, third), invalidGrant)
  t.like(demo.calls, { refreshToken: 4, reusedRefreshToken: 1 })
})

test('a refresh may request fewer scopes, a later one all of them again, also those for single resources, and none may request more', async t => {
  const demo = await start(t)
  const tokens = await logIn(t, demo)
  const narrow = await refresh(demo, tokens.refresh_token, 'viewables:read')
  t.is(narrow.body.scope, 'viewables:read')
  t.deepEqual(claimsOf(narrow.body.access_token).scope, ['viewables:read'])
  const hubs = (token: string) =>
    fetch(`${demo.issuer}/project/v1/hubs`, { headers: { Authorization: `Bearer ${token}` } })
  const refused = await Promise.all([narrow.body.access_token, tokens.access_token, ''].map(hubs))
  t.deepEqual(
    refused.map(({ status }) => status),
    [403, 200, 401],
    'the API needs the scope of the internal token'
  )
  const wide = await refresh(demo, narrow.body.refresh_token, 'data:read viewables:read')
  t.deepEqual(claimsOf(wide.body.access_token).scope, ['data:read', 'viewables:read'])
  const narrowAgain = await refresh(demo, wide.body.refresh_token, 'viewables:read')
  const { refresh_token: refreshToken } = narrowAgain.body
  const more = await refresh(demo, refreshToken, 'data:read data:write')
  t.like(more, { status: 400, body: { error: 'invalid_scope' } })
  const withoutScope = await refresh(demo, refreshToken)
  t.deepEqual(claimsOf(withoutScope.body.access_token).scope, ['data:read', 'viewables:read'])
  const urns = Array.from({ length: 20 }, (_, index) => `data:read:urn:adsk.objects:os.object:bucket/${index}`)
  const long = await logIn(t, demo, { scope: ['data:read', ...urns].join(' ') })
  t.true(long.access_token.length > 2000)
  const refreshed = await refresh(demo, long.refresh_token)
  t.is(refreshed.body.scope, ['data:read', ...urns].join(' '))
})

test('access tokens expire after tokenLifetimeSeconds on the given clock', async t => {
  const clock = createClock()
  const demo = await start(t, { tokenLifetimeSeconds: 30, now: clock.now })
  const tokens = await logIn(t, demo)
  t.is(tokens.expires_in, 30)
  clock.advanceSeconds(29)
  t.is((await userInfo(demo, tokens.access_token)).status, 200)
  clock.advanceSeconds(1)
  t.is((await userInfo(demo, tokens.access_token)).status, 401)
  const { body } = await refresh(demo, tokens.refresh_token)
  t.is(claimsOf(body.access_token).exp, Math.floor(clock.now() / 1000) + 30)
  t.is((await userInfo(demo, body.access_token)).status, 200)
})

test('userinfo refuses everything that is not an access token of this provider', async t => {
  const demo = await start(t)
  const other = await start(t, { signingKey: undefined })
  const tokens = await logIn(t, demo, { scope: 'openid data:read' })
  const foreign = await logIn(t, other)
  const [header, payload, signature] = tokens.access_token.split('.')
  const wider = Buffer.from(JSON.stringify({ ...claimsOf(tokens.access_token), userid: 'SOMEONE' })).toString(
    'base64url'
  )
  const refused = {
    'the ID token': tokens.id_token ?? '',
    'the refresh token': tokens.refresh_token,
    'another provider’s token': foreign.access_token,
    'another payload': `${header}.${wider}.${signature}`,
    'no signature': `${header}.${payload}.`,
    'two parts': `${header}.${payload}`,
    'something else': 'x'
  }
  for (const [what, token] of Object.entries(refused)) {
    const response = await userInfo(demo, token)
    t.is(response.status, 401, what)
    t.is(response.headers.get('www-authenticate'), 'Bearer error="invalid_token"', what)
  }
  t.is((await fetch(`${demo.issuer}/userinfo`)).status, 401)
})
