import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import test from 'ava'
import { findingOfError } from '#src/cli/check/endpoint-errors.js'
import { explainConnectionError } from '#src/cli/check/network-errors.js'
import { ProviderError } from '#src/provider/provider-error.js'
import { assertCases } from '../../helpers/case-file.js'
import { selfSignedCertificate } from '../../helpers/certificate.js'
import { faults } from '../../helpers/hostile-idp/index.js'
import { listen } from '../../helpers/ports.js'
import { checkAt, isGolden, usedEndpoints } from './checked.js'

for (const [what, createServer] of Object.entries({
  'a certificate that is not trusted': () => createHttpsServer(selfSignedCertificate()),
  'an https address at which the server speaks plain http': () => createHttpServer()
})) {
  test(`client: ${what}`, async t => {
    const url = `https://localhost:${await listen(t, createServer())}/token`
    const { allOf } = await checkAt(t, { env: () => ({ PLATFORM_TOKEN_ENDPOINT: url }) })
    isGolden(t, allOf('client'))
  })
}

test('check waits for a provider that never responds only as long as platform.timeout', async t => {
  let firstRequestAt: number | undefined
  const hang = () => {
    firstRequestAt ??= performance.now()
    return faults.hang()
  }
  const { allOf, code } = await checkAt(t, {
    prepare: idp => {
      for (const endpoint of usedEndpoints) idp.failWhen(endpoint, hang)
    },
    env: () => ({ PLATFORM_TIMEOUT: '1' })
  })
  // By default the limit is ten seconds for each of the four requests.
  t.true(performance.now() - Number(firstRequestAt) < 9000)
  isGolden(t, ['login', 'client', 'userinfo', 'logout'].flatMap(allOf))
  t.is(code, 1)
})

test('a failed connection is explained, with and without the setting of the URL', t =>
  assertCases(t, 'test/cli/check/network-errors.txt', (code, [setting]) =>
    explainConnectionError(code === 'undefined' ? undefined : code, { host: 'id.example', setting, timeoutSeconds: 10 })
  ))

const proxied: readonly (readonly [proxy: string, code: string])[] = [
  ['http://user:hunter2@127.0.0.1:1', 'ECONNREFUSED'],
  ['http://user:hunter2@proxy.corp:3128', 'ENOTFOUND'],
  ['http://proxy.corp:3128', 'PROXY_RESPONDED_407'],
  ['http://proxy.corp:3128', 'PROXY_RESPONDED_403'],
  ['ftp://user:hunter2@proxy.corp', 'PROXY_NOT_HTTP'],
  ['http://user:hunter2@:x', 'PROXY_URL_MALFORMED'],
  ['http://hunter2/hunter2@proxy.example', 'PROXY_URL_MALFORMED'],
  ['http://hunter2#hunter2@proxy.example', 'PROXY_URL_MALFORMED'],
  // The host on the other side of the tunnel has this certificate.
  ['http://proxy.corp:3128', 'CERT_HAS_EXPIRED']
]

test.serial('behind a proxy, check blames the proxy only for its own failures', t => {
  const before = { ...process.env }
  t.teardown(() => {
    process.env = before
  })
  const request = {
    name: 'The token endpoint',
    url: 'https://id.example/token',
    setting: undefined,
    timeoutSeconds: 10
  }
  const findings = proxied.map(([proxy, code]) => {
    process.env = { HTTPS_PROXY: proxy }
    return findingOfError(new ProviderError('token', 'unreachable', 'failed', { code }), request)
  })
  t.notRegex(JSON.stringify(findings), /hunter2|PROXY_(NOT|URL|RESPONDED)/)
  isGolden(t, findings)
})
