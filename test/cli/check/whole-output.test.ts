// Samples of the whole output of `check`, and of a start with unusable settings, as an operator reads them. All other tests
// check only what a message must contain.
import test from 'ava'
import { defaultCallbackUrl } from '../../helpers/config.js'
import { createHostileIdp } from '../../helpers/hostile-idp/index.js'
import { modes } from '../../helpers/modes.js'
import { freePort } from '../../helpers/ports.js'
import { environmentFor } from '../../helpers/program.js'
import { run } from '../shell.js'
import { fewAtOnce } from './checked.js'

/** Replaces the ports and paths, which differ from run to run. */
function steady(text: string): string[] {
  return text
    .trimEnd()
    .split('\n')
    .map(line =>
      line
        .replace(/:\d{4,5}/g, ':PORT')
        .replace(/Port \d+/, 'Port N')
        .replace(/port \d{5}/, 'port N')
        .replace(/\S+index\.html/, 'PAGE')
        // On a busy machine, a response may arrive late.
        .replace(/clock is \d+ s behind/, 'clock agrees with')
    )
}

for (const mode of modes) {
  test(`check of a demo in ${mode} mode`, async t => {
    const args = ['check', '--demo', '--mode', mode, '--port', String(await freePort())]
    const { code, output, errors } = await fewAtOnce(() => run(t, args))
    t.deepEqual(steady(output), [
      'ok       settings   The settings are valid (without a settings file).',
      'ok       callback   Register exactly http://localhost:PORT/api/auth/callback with the provider. Users open http://localhost:PORT/.',
      mode === 'dual'
        ? 'ok       scopes     Pages get viewables:read, which is less than the server has (data:read viewables:read).'
        : 'ok       scopes     The token (data:read account:read account:write) stays on the server.',
      'ok       port       Port N is free.',
      'ok       wwwroot    PAGE is the start page.',
      'ok       redis      No Redis is configured. One process needs none, but several replicas need redis.url.',
      'ok       proxy      http://127.0.0.1:PORT accepts connections.',
      'ok       endpoints  The discovery document of http://127.0.0.1:PORT contains the endpoints.',
      'ok       login      The authorization endpoint accepts this login (303).',
      'ok       client     The client id and secret work. The token endpoint rejected only the made-up code (invalid_grant).',
      'ok       userinfo   The user info endpoint rejects a made-up token, as it should (401).',
      ...(mode === 'dual'
        ? [
            'ok       refresh    Dual mode needs a provider where a refresh can request only the public scopes, and the next refresh can request all scopes again. Only a login can test that.'
          ]
        : []),
      'ok       logout     The revocation endpoint accepts requests.',
      "ok       clock      This machine's clock agrees with the provider's.",
      '',
      `${mode === 'dual' ? 14 : 13} ok, 0 warnings, 0 failed. The server can run with these settings.`
    ])
    t.deepEqual([code, errors], [0, ''])
  })
}

test('check with a wrong client secret and a Redis that does not run', async t => {
  const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
  const env = {
    ...environmentFor(idp, defaultCallbackUrl),
    PORT: String(await freePort()),
    PLATFORM_CLIENT_SECRET: 'wrong',
    REDIS_URL: 'redis://127.0.0.1:1'
  }
  const { code, output, errors } = await fewAtOnce(() => run(t, ['check'], { env }))
  t.deepEqual(steady(output), [
    'ok       settings   The settings are valid (without a settings file).',
    'ok       callback   Register exactly http://localhost:PORT/api/auth/callback with the provider. Users open http://localhost:PORT/.',
    'warning  callback   The callback URL leads to port 8080, but the server listens on port N. Next: Use the same port (--port 8080), unless a proxy forwards the requests.',
    'warning  callback   The callback URL says localhost, but the server prints the name 127.0.0.1. A login that begins at 127.0.0.1 fails, because cookies belong to one host name. Next: Open only http://localhost:PORT/, or use the same name in the setting "host" and in the callback URL.',
    'ok       scopes     The token (data:read account:read account:write) stays on the server.',
    'warning  scopes     platform.issuer is set, but openid is not among the scopes, so no ID token proves who signs in. Next: Add openid to the scopes, unless this provider supports only OAuth 2.0.',
    'ok       port       Port N is free.',
    'ok       wwwroot    PAGE is the start page.',
    'failed   redis      Redis cannot be reached: 127.0.0.1:1 refuses connections (ECONNREFUSED). Next: Check host and port in redis.url. If they are right, no server listens there or a firewall rejects the connection.',
    'ok       endpoints  The discovery document of http://127.0.0.1:PORT contains the endpoints.',
    'ok       login      The authorization endpoint accepts this login (302).',
    "failed   client     The client id or secret is wrong. The token endpoint rejects the client (401 invalid_client). Next: Compare platform.clientId and platform.clientSecret with the application's page. If they are right, the client may need private_key_jwt as platform.clientAuthMethod.",
    'ok       userinfo   The user info endpoint rejects a made-up token, as it should (401).',
    'failed   logout     The revocation endpoint rejects the client (401 invalid_client). Next: Fix the client finding first. If the client finding is ok, set logout.revoke to false.',
    "ok       clock      This machine's clock agrees with the provider's.",
    '',
    '9 ok, 3 warnings, 3 failed. Fix the failed findings, then run check again.'
  ])
  t.deepEqual([code, errors], [1, ''])
})

test('a start with unusable settings', async t => {
  const { code, output, errors } = await run(t, [], {
    env: { PORT: 'x', SERVER_SESSION_SECRET: '  ', PLATFORM_AUTH_MOD: 'dual' },
    files: { '.platform-auth-serverrc': 'platform: { callbackUrl: "" }' }
  })
  t.deepEqual(errors.trimEnd().split('\n'), [
    'The settings cannot be used:',
    '  port (variable PORT) cannot be the string "x". Set it to a port number from 0 to 65535.',
    '  session.secret (variable SERVER_SESSION_SECRET) is empty. Set the variable SERVER_SESSION_SECRET or SERVER_SESSION_SECRET_FILE, the flag --session-secret-file, or session.secret in a settings file.',
    '  platform.clientId is required. Set the variable PLATFORM_CLIENT_ID, the flag --client-id, or platform.clientId in a settings file.',
    '  platform.clientSecret is required. Set the variable PLATFORM_CLIENT_SECRET or PLATFORM_CLIENT_SECRET_FILE, the flag --client-secret-file, or platform.clientSecret in a settings file.',
    '  platform.callbackUrl (file .platform-auth-serverrc) is empty. Set the variable PLATFORM_CALLBACK_URL, the flag --callback-url, or platform.callbackUrl in a settings file.',
    'Also noticed:',
    '  PLATFORM_AUTH_MOD (variable PLATFORM_AUTH_MOD) is not a setting of this server. Did you mean PLATFORM_AUTH_MODE?'
  ])
  t.deepEqual([code, output], [2, ''])
})
