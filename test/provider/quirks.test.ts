import test from 'ava'
import { APS } from '#src/provider/metadata.js'
import { quirksOf } from '#src/provider/quirks.js'

test('APS is recognised by the host of its token endpoint, and before discovery by its issuer', t => {
  for (const addresses of [{ tokenEndpoint: APS.tokenEndpoint }, { issuer: APS.issuer }]) {
    const quirks = quirksOf(addresses)
    t.like(quirks, { name: 'Autodesk Platform Services', isSure: true, takesPlainCredentials: true })
    t.true(quirks.logsOutWithoutHint && quirks.identifiesWithoutOpenid)
  }
  t.is(quirksOf({ issuer: APS.issuer, tokenEndpoint: 'https://own.example/token' }).name, undefined)
})

test('an unknown provider has no quirks', t => {
  const { name, dualModeProblem, ...deviations } = quirksOf({
    issuer: 'https://idp.example',
    authorizationEndpoint: 'https://idp.example/authorize',
    tokenEndpoint: 'https://idp.example/token'
  })
  t.deepEqual([name, dualModeProblem], [undefined, undefined])
  t.deepEqual(Object.values(deviations), [false, false, false, false, false])
})

test('a provider that is recognised by its paths keeps the requests of the standards', t => {
  const quirks = quirksOf({
    authorizationEndpoint: 'https://id.example/realms/a/protocol/openid-connect/auth',
    tokenEndpoint: 'https://id.example/realms/a/protocol/openid-connect/token'
  })
  t.like(quirks, { name: 'Keycloak', isSure: false, dualModeProblem: null, takesPlainCredentials: false })
})
