import test from 'ava'
import { APS } from '#src/provider/metadata.js'
import { quirksOf } from '#src/provider/quirks.js'

test('APS is recognised by the host of its token endpoint, and before discovery by its issuer', t => {
  for (const addresses of [{ tokenEndpoint: APS.tokenEndpoint }, { issuer: APS.issuer }]) {
    const quirks = quirksOf(addresses)
    t.like(quirks, { name: 'Autodesk Platform Services', isSure: true, takesPlainCredentials: true })
    t.true(quirks.logsOutWithoutHint)
    t.true(quirks.identifiesWithoutOpenid)
  }
  t.is(quirksOf({ issuer: APS.issuer, tokenEndpoint: 'https://own.example/token' }).name, undefined)
})

test('a provider that is recognised by its paths keeps the requests of the standards, and an unknown provider has no quirks', t => {
  const quirks = quirksOf({
    authorizationEndpoint: 'https://id.example/realms/a/protocol/openid-connect/auth',
    tokenEndpoint: 'https://id.example/realms/a/protocol/openid-connect/token'
  })
  t.deepEqual(quirks, { name: 'Keycloak', issuesOfflineWithoutConsent: true, dualModeProblem: null })
  const issuer = 'https://idp.example'
  t.deepEqual(quirksOf({ issuer, authorizationEndpoint: `${issuer}/authorize`, tokenEndpoint: `${issuer}/token` }), {})
})

const recognised: readonly (readonly [issuer: string, authorization: string, token: string, expected: object])[] = [
  ['https://accounts.google.com', '/o/oauth2/v2/auth', '/token', { name: 'Google', needsAccessType: true }],
  ['https://cognito-idp.eu-west-1.amazonaws.com/a', '/oauth2/authorize', '/oauth2/token', { needsLogoutUri: true }],
  ['https://a.auth.eu-west-1.amazoncognito.com', '/oauth2/authorize', '/oauth2/token', { needsLogoutUri: true }],
  ['https://id.example/o/app/', '/application/o/authorize/', '/application/o/token/', { name: 'authentik' }],
  ['https://id.example/o', '/o/authorize/', '/o/token/', { name: 'Django OAuth Toolkit' }],
  ['https://team.okta.com', '/oauth2/v1/authorize', '/oauth2/v1/token', { issuesOfflineWithoutConsent: true }],
  ['https://team.okta-emea.com', '/oauth2/v1/authorize', '/oauth2/v1/token', { issuesOfflineWithoutConsent: true }],
  ['https://login.microsoftonline.us/a/v2.0', '/a', '/b', { issuesOfflineWithoutConsent: true }],
  ['https://login.partner.microsoftonline.cn/a/v2.0', '/a', '/b', { issuesOfflineWithoutConsent: true }],
  ['https://okta.com.example', '/oauth2/v1/authorize', '/oauth2/v1/token', {}],
  ['https://accounts.google.com.example', '/auth', '/token', {}]
]

for (const [issuer, authorization, token, expected] of recognised) {
  test(`the quirks of ${issuer}`, t => {
    const { origin } = new URL(issuer)
    const quirks = quirksOf({ issuer, authorizationEndpoint: origin + authorization, tokenEndpoint: origin + token })
    if (Object.keys(expected).length === 0) t.deepEqual(quirks, {})
    else t.like(quirks, expected)
  })
}
