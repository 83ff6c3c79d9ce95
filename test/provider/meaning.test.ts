// The meaning of a response of the token endpoint for the refresh token that was sent, with the responses that providers send.
import test from 'ava'
import { parseJson } from '#src/base/json.js'
import { type Meaning, meaningOf } from '#src/provider/meaning.js'
import { OAuthError } from '#src/provider/provider-error.js'

const tokens = '{"access_token":"a","token_type":"Bearer","expires_in":3599}'
const aps = (errorCode: string) =>
  `{"developerMessage":"The client_id specified does not have access to the api product","userMessage":"","errorCode":"${errorCode}","more info":"https://x"}`

const rows: readonly (readonly [provider: string, status: number, body: string, meaning: Meaning])[] = [
  ['any provider', 200, tokens, 'success'],
  ['a provider that creates tokens', 201, tokens, 'success'],
  ['a provider with an empty error', 200, '{"access_token":"a","error":""}', 'success'],
  ['any provider', 400, '{"error":"invalid_grant"}', 'end'],
  ['any provider', 400, '{"error":"invalid_scope"}', 'end'],
  ['Entra', 400, '{"error":"interaction_required","error_codes":[50076],"suberror":"basic_action"}', 'end'],
  ['Entra', 400, '{"error":"login_required"}', 'end'],
  ['Entra', 400, '{"error":"consent_required"}', 'end'],
  ['Auth0', 403, '{"error":"mfa_required","mfa_token":"m"}', 'end'],
  ['Hydra', 401, '{"error":"token_inactive","error_description":"Token is inactive"}', 'end'],
  ['GitHub', 200, '{"error":"bad_refresh_token","error_uri":"https://docs.github.com"}', 'end'],
  ['GitHub', 200, '{"error":"expired_token"}', 'end'],
  ['GitHub', 200, '{"error":"incorrect_client_credentials"}', 'weak'],
  ['GitHub', 200, '{"error":"something_new"}', 'ambiguous'],
  ['Slack', 200, '{"ok":false,"error":"internal_error"}', 'ambiguous'],
  ['Dex', 400, '{"error":"invalid_request","error_description":"Refresh token is invalid"}', 'ambiguous'],
  ['Facebook', 400, '{"error":{"message":"m","type":"OAuthException","code":190}}', 'weak'],
  ['Strava', 400, '{"message":"Bad Request","errors":[{"resource":"RefreshToken","code":"invalid"}]}', 'weak'],
  ['the platform with another code', 400, aps('AUTH-006'), 'weak'],
  ['a provider with an error of its own', 403, '{"error":"Forbidden"}', 'weak'],
  ['a provider whose error is null', 400, '{"error":null}', 'weak'],
  ['a gateway', 502, '<html>Bad Gateway</html>', 'failure'],
  ['a maintenance page', 503, '{"error":"invalid_request"}', 'failure'],
  ['a slow request', 408, '{"error":"invalid_request"}', 'failure'],
  ['a wrong secret', 401, '{"error":"invalid_client"}', 'weak'],
  ['Keycloak', 400, '{"error":"unauthorized_client"}', 'weak'],
  ['a client without refresh tokens', 400, '{"error":"unsupported_grant_type"}', 'weak'],
  ['the platform', 403, aps('AUTH-001'), 'weak'],
  ['the platform', 400, aps('AUTH-003'), 'weak'],
  ['a firewall', 403, '<html>Request blocked</html>', 'weak'],
  ['a proxy with JSON that is no object', 400, '"bad request"', 'weak'],
  ['an API gateway', 403, '{"message":"Forbidden"}', 'weak'],
  ['a login page', 302, '', 'failure'],
  ['Atlassian', 403, '{"error":"unauthorized_client","error_description":"refresh_token is invalid"}', 'weak'],
  ['Ferriskey', 401, 'Invalid token', 'weak'],
  ['Twitch', 400, '{"status":400,"message":"Invalid refresh token"}', 'weak'],
  ['a gateway with a code of its own', 403, '{"error":"Not Found"}', 'weak'],
  ['a code that is a name of JavaScript', 400, '{"error":"constructor"}', 'ambiguous'],
  ...[301, 404, 405, 407, 408, 410, 413, 421, 425, 429, 431, 500].flatMap(status =>
    ['{"error":"invalid_grant"}', '<html>'].map(body => ['any provider', status, body, 'failure'] as const)
  ),
  ...[200, 400, 401, 403].flatMap(status =>
    ['temporarily_unavailable', 'server_error', 'slow_down'].map(
      code => ['a temporary fault', status, `{"error":"${code}"}`, 'failure'] as const
    )
  )
]

for (const [provider, status, body, meaning] of rows) {
  test(`${provider}: ${status} ${body} means ${meaning}`, t => {
    t.is(meaningOf({ status, json: parseJson(body) }), meaning)
  })
}

test('an OAuth error has the meaning of the response from which it came', t => {
  const error = (status: number, code: string) => new OAuthError({ error: code, status, endpoint: 'token' })
  t.is(error(200, 'bad_refresh_token').meaning, 'end')
  t.is(error(400, 'invalid_request').meaning, 'ambiguous')
  t.is(error(401, 'invalid_client').meaning, 'weak')
})
