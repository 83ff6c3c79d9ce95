import test from 'ava'
import { createHostileIdp, faults, quirksOf } from '../../../helpers/hostile-idp/index.js'
import { check, checkAt, discovering, type Situation } from '../checked.js'

const table: readonly (readonly [what: string, situation: Situation, line: string])[] = [
  ['a working revocation endpoint', {}, 'ok logout The revocation endpoint accepts requests.'],
  [
    'a wrong secret at Keycloak',
    {
      prepare: idp => {
        idp.settings.quirks = quirksOf.keycloak
      },
      env: () => ({ PLATFORM_CLIENT_SECRET: 'not-the-secret' })
    },
    'failed logout The revocation endpoint rejects the client (401 unauthorized_client). Next: Fix the client finding first. If the client finding is ok, set logout to local.'
  ],
  [
    'a wrong secret',
    { env: () => ({ PLATFORM_CLIENT_SECRET: 'not-the-secret' }) },
    'failed logout The revocation endpoint rejects the client (401 invalid_client). Next: Fix the client finding first. If the client finding is ok, set logout to local.'
  ],
  [
    'a revocation endpoint that rejects a made-up token',
    { prepare: idp => idp.fail('revoke', faults.error('invalid_request')) },
    'warning logout The revocation endpoint rejects a made-up token (400 invalid_request), so this check cannot tell if it accepts a real one. Next: Sign in and out once, and look for revocation_failed in the log.'
  ],
  [
    'a 400 without an error code',
    { prepare: idp => idp.fail('revoke', faults.empty(400)) },
    'warning logout The revocation endpoint rejects a made-up token (400), so this check cannot tell if it accepts a real one. Next: Sign in and out once, and look for revocation_failed in the log.'
  ],
  [
    'a revocation endpoint that is switched off',
    { env: () => ({ PLATFORM_REVOCATION_ENDPOINT: 'none' }) },
    'ok logout Revocation is switched off, so refresh tokens stay valid after a logout.'
  ],
  [
    'an address without an endpoint',
    { env: idp => ({ PLATFORM_REVOCATION_ENDPOINT: `${idp.issuer}/nothing` }) },
    "failed logout The revocation endpoint answers 404, so there is no such endpoint at ISSUER/nothing. Next: Compare platform.revocationEndpoint with the provider's documentation."
  ],
  [
    "a logout that ends only this server's session",
    { args: ['--logout', 'local'] },
    'ok logout A logout ends only the session of this server. The server does not inform the provider.'
  ],
  [
    'an end-session endpoint',
    { args: ['--logout', 'idp'] },
    'ok logout The end-session endpoint answers (302). http://localhost:8080/ must be registered as an address to return to.'
  ],
  [
    'an end-session endpoint that rejects the address to return to',
    { args: ['--logout', 'idp'], prepare: idp => idp.fail('endSession', faults.html(400)) },
    'failed logout The end-session endpoint rejects the request (400). Next: Register http://localhost:8080/ at the provider as an address to return to after logout.'
  ],
  [
    'an end-session endpoint that does not exist',
    { args: ['--logout', 'idp'], env: idp => ({ PLATFORM_END_SESSION_ENDPOINT: `${idp.issuer}/nothing` }) },
    "failed logout The end-session endpoint answers 404, so there is no such endpoint at ISSUER/nothing. Next: Compare platform.endSessionEndpoint with the provider's documentation."
  ],
  [
    'an end-session endpoint that cannot be reached',
    { args: ['--logout', 'idp'], env: () => ({ PLATFORM_END_SESSION_ENDPOINT: 'http://127.0.0.1:1/logout' }) },
    'failed logout The end-session endpoint cannot be reached: 127.0.0.1:1 refuses connections (ECONNREFUSED). Next: Check host and port in platform.endSessionEndpoint. If they are right, no server listens there or a firewall rejects the connection.'
  ]
]

for (const [what, situation, expected] of table) {
  test(`check reports the right logout finding for ${what}`, async t => {
    const { line, idp } = await checkAt(t, situation)
    t.is(line('logout'), expected.replace('ISSUER', idp.issuer))
  })
}

const missing: readonly (readonly [args: readonly string[], member: string, line: string])[] = [
  [
    [],
    'revocation_endpoint',
    'warning logout The discovery document has no revocation endpoint, so refresh tokens stay valid after a logout. Next: Set platform.revocationEndpoint, or set logout to local.'
  ],
  [
    ['--logout', 'idp'],
    'end_session_endpoint',
    'failed logout The discovery document has no end-session endpoint, so a logout does not sign out at the provider. Next: Set platform.endSessionEndpoint, or set logout to revoke.'
  ]
]

for (const [args, member, expected] of missing) {
  test(`check reports that the discovery document has no ${member}`, async t => {
    const idp = await createHostileIdp(t)
    idp.discovery = document => ({ ...document, [member]: undefined })
    t.is((await check(t, args, { env: discovering(idp) })).line('logout'), expected)
  })
}

test('check warns about an end-session endpoint that redirects to an error page, because it may require the ID token', async t => {
  const idp = await createHostileIdp(t)
  idp.settings.quirks = { needsIdTokenHint: true }
  const { line, code } = await check(t, ['--logout', 'idp'], { env: discovering(idp) })
  t.is(
    line('logout'),
    'warning logout The end-session endpoint rejects a logout without an ID token: invalid_request. Next: Register http://localhost:8080/ at the provider as an address to return to after logout. If it is registered, sign in and out once, because some providers require the ID token.'
  )
  t.is(code, 0)
})
