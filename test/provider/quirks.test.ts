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
  t.deepEqual(quirks, { name: 'Keycloak', dualModeProblem: null })
  const issuer = 'https://idp.example'
  t.deepEqual(quirksOf({ issuer, authorizationEndpoint: `${issuer}/authorize`, tokenEndpoint: `${issuer}/token` }), {})
})
