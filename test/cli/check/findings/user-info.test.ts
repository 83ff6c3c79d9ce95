import test from 'ava'
import { createHostileIdp, faults } from '../../../helpers/hostile-idp/index.js'
import { check, checkAt, discovering, type Situation } from '../checked.js'

const compare = "Next: Compare platform.userinfoEndpoint with the provider's documentation."

const table: readonly (readonly [what: string, situation: Situation, line: string])[] = [
  [
    'an endpoint that rejects a made-up token',
    {},
    'ok userinfo The user info endpoint rejects a made-up token, as it should (401).'
  ],
  [
    'a gateway that rejects a made-up token',
    { prepare: idp => idp.fail('userinfo', faults.gateway('AUTH-006', 403)) },
    'ok userinfo The user info endpoint rejects a made-up token, as it should (403).'
  ],
  [
    'an address that accepts any token',
    { prepare: idp => idp.fail('userinfo', faults.answer({ status: 200, body: { name: 'Everybody' } })) },
    `failed userinfo The address accepted a made-up token, so it is not a user info endpoint. ${compare}`
  ],
  [
    'an HTML page',
    { prepare: idp => idp.fail('userinfo', faults.html()) },
    `failed userinfo The user info endpoint is unusable: the response is not a JSON object. ${compare}`
  ],
  [
    'an address without an endpoint',
    { env: idp => ({ PLATFORM_USERINFO_ENDPOINT: `${idp.issuer}/nothing` }) },
    `failed userinfo The user info endpoint answers 404, so there is no such endpoint at ISSUER/nothing. ${compare}`
  ]
]

for (const [what, situation, expected] of table) {
  test(`check reports the right user info finding for ${what}`, async t => {
    const { line, idp } = await checkAt(t, situation)
    t.is(line('userinfo'), expected.replace('ISSUER', idp.issuer))
  })
}

test('without a user info endpoint check says that names come from the ID token, or that there are none', async t => {
  const idp = await createHostileIdp(t)
  idp.discovery = document => ({ ...document, userinfo_endpoint: undefined })
  const asking = await check(t, ['--scopes', 'openid data:read'], { env: discovering(idp) })
  t.is(asking.line('userinfo'), 'ok userinfo There is no user info endpoint, so names come from the ID token.')
  const silent = await check(t, ['--scopes', 'data:read'], { env: discovering(idp) })
  t.is(
    silent.line('userinfo'),
    'warning userinfo There is no user info endpoint and no ID token, so /api/auth/profile returns an empty name. Next: Add openid to the scopes.'
  )
  const guarded = await check(t, ['--scopes', 'data:read'], {
    env: { ...discovering(idp), PLATFORM_AUTH_ACCESS_ALLOW: '@team.example' }
  })
  t.is(
    guarded.line('userinfo'),
    'failed userinfo There is no user info endpoint and no ID token, so access.allow cannot be checked and nobody can sign in. Next: Add openid and email to the scopes.'
  )
  t.is(guarded.code, 1)
})
