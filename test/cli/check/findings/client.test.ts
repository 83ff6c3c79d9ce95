import test from 'ava'
import { faults } from '../../../helpers/hostile-idp/index.js'
import { checkAt, type Situation } from '../checked.js'

const table: readonly (readonly [what: string, situation: Situation, line: string])[] = [
  [
    'a provider that rejects only the made-up code',
    {},
    'ok client The client id and secret work. The token endpoint rejected only the made-up code (invalid_grant).'
  ],
  [
    'a wrong secret',
    { env: () => ({ PLATFORM_CLIENT_SECRET: 'not-the-secret' }) },
    "failed client The client id or secret is wrong. The token endpoint rejects the client (401 invalid_client). Next: Compare platform.clientId and platform.clientSecret with the application's page. If they are right, set platform.clientAuthentication to its other value."
  ],
  [
    'a wrong id',
    { env: () => ({ PLATFORM_CLIENT_ID: 'another-client' }) },
    "failed client The client id or secret is wrong. The token endpoint rejects the client (401 invalid_client). Next: Compare platform.clientId and platform.clientSecret with the application's page. If they are right, set platform.clientAuthentication to its other value."
  ],
  [
    'a wrong secret at Keycloak',
    { prepare: idp => idp.fail('token', faults.error('unauthorized_client', 401)) },
    "failed client The client id or secret is wrong. The token endpoint rejects the client (401 unauthorized_client). Next: Compare platform.clientId and platform.clientSecret with the application's page. If they are right, set platform.clientAuthentication to its other value."
  ],
  [
    "the gateway's error for a wrong client",
    { prepare: idp => idp.fail('token', faults.gateway('AUTH-001', 403)) },
    "failed client The client id or secret is wrong. The token endpoint rejects the client (403 invalid_client). Next: Compare platform.clientId and platform.clientSecret with the application's page. If they are right, set platform.clientAuthentication to its other value."
  ],
  [
    'another error of the gateway',
    { prepare: idp => idp.fail('token', faults.gateway('AUTH-010', 403)) },
    "failed client The token endpoint rejects this client (403) and gives no reason. Next: Compare platform.clientId and platform.clientSecret with the application's page. If they are right, ask the provider if it blocks this machine."
  ],
  [
    'an HTML page with status 401',
    { prepare: idp => idp.fail('token', faults.html(401)) },
    "failed client The token endpoint rejects this client (401) and gives no reason. Next: Compare platform.clientId and platform.clientSecret with the application's page. If they are right, ask the provider if it blocks this machine."
  ],
  [
    'a client that may not use the grant',
    { prepare: idp => idp.fail('token', faults.error('unauthorized_client')) },
    'failed client The token endpoint does not let this client exchange codes (400 unauthorized_client). Next: Register the application as a web application that may use the authorization code grant.'
  ],
  [
    'another registered error',
    { prepare: idp => idp.fail('token', faults.error('invalid_request')) },
    "warning client The token endpoint rejected a made-up code with an unusual error (400 invalid_request), so the secret may be wrong. Next: Sign in once. If that fails, look for invalid_request in the provider's documentation."
  ],
  [
    'an endpoint that gives tokens for any code',
    { prepare: idp => idp.fail('token', faults.answer({ status: 200, body: { access_token: 'a', expires_in: 1 } })) },
    'failed client The token endpoint gave tokens for a made-up code. Next: Do not use this provider. Compare its address with its documentation.'
  ],
  [
    'an HTML page instead of tokens',
    { prepare: idp => idp.fail('token', faults.html(200)) },
    "failed client The token endpoint is unusable: the response is not a JSON object. Next: Compare platform.tokenEndpoint with the provider's documentation."
  ],
  [
    'an address without an endpoint',
    { env: idp => ({ PLATFORM_TOKEN_ENDPOINT: `${idp.issuer}/nothing?here` }) },
    "failed client The token endpoint answers 404, so there is no such endpoint at ISSUER/nothing. Next: Compare platform.tokenEndpoint with the provider's documentation."
  ],
  [
    'a redirect',
    { prepare: idp => idp.fail('token', faults.redirect('https://elsewhere.example/')) },
    "failed client The token endpoint answers 302, but the server does not follow redirects. Next: Compare platform.tokenEndpoint with the provider's documentation."
  ],
  [
    'too many requests',
    { prepare: idp => idp.fail('token', faults.tooManyRequests()) },
    'warning client The token endpoint answers 429, so it has received too many requests. Next: Check again in a minute.'
  ],
  [
    'a provider that answers 503',
    { prepare: idp => idp.fail('token', faults.status(503)) },
    'failed client The token endpoint answers 503, which is a fault of the provider. Next: Check again later. Ask the provider if the problem persists.'
  ],
  [
    'a 400 without an error code',
    { prepare: idp => idp.fail('token', faults.empty(400)) },
    "failed client The token endpoint answers 400, which is an unexpected status. Next: Compare platform.tokenEndpoint with the provider's documentation."
  ]
]

for (const [what, situation, expected] of table) {
  test(`check reports the right client finding for ${what}`, async t => {
    const { line, idp, code } = await checkAt(t, situation)
    t.is(line('client'), expected.replace('ISSUER', idp.issuer))
    if (expected.startsWith('failed')) t.is(code, 1)
    else t.is(code, 0)
  })
}

test('check sends one made-up code, with the parameters of a real code exchange', async t => {
  const { idp } = await checkAt(t)
  t.is(idp.tokenRequests.length, 1)
  t.like(idp.tokenRequests[0]?.form, {
    grant_type: 'authorization_code',
    redirect_uri: 'http://localhost:8080/api/auth/callback'
  })
  t.regex(idp.tokenRequests[0]?.form.code_verifier ?? '', /^[\w-]{43}$/)
})

test('check prints neither a secret nor text from the provider', async t => {
  const quoting = (text: string) =>
    faults.answer({ status: 400, body: { error: text, error_description: text, userMessage: text } })
  for (const text of ['<script>alert(1)</script>', '\u001b[31mred', 'eyJhbGciOiJSUzI1NiJ9.secret']) {
    const { output, idp, line } = await checkAt(t, {
      prepare: idp => {
        for (const endpoint of ['authorize', 'token', 'userinfo', 'revoke'] as const) {
          idp.failWhen(endpoint, () => quoting(text))
        }
      }
    })
    t.regex(line('client') ?? '', /^failed client The token endpoint answers 400, which/)
    t.false(output.includes(text))
    for (const secret of [idp.clientSecret, 'wG4vT9qLx2ZbN7rKp5YcJ8sHd3MfA6eU']) t.false(output.includes(secret))
  }
})
