import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import test, { type ExecutionContext } from 'ava'
import { explainConnectionError, findingOfError } from '#src/cli/check/findings.js'
import { ProviderError } from '#src/provider/errors.js'
import { selfSignedCertificate } from '../../helpers/certificate.js'
import { faults } from '../../helpers/hostile-idp/index.js'
import { carries } from '../../helpers/messages.js'
import { listen } from '../../helpers/ports.js'
import { checkAt, isFinding, usedEndpoints } from './checked.js'

const ports: Readonly<Record<string, readonly [url: (t: ExecutionContext) => Promise<string>, finding: string]>> = {
  'a certificate that is not trusted': [
    async t => `https://localhost:${await listen(t, createHttpsServer(selfSignedCertificate()))}`,
    'failed token endpoint trust localhost DEPTH_ZERO_SELF_SIGNED_CERT → NODE_EXTRA_CA_CERTS'
  ],
  'an https address at which the server speaks plain http': [
    async t => `https://localhost:${await listen(t, createHttpServer())}`,
    'failed token endpoint localhost does not speak TLS → platform.tokenEndpoint TLS'
  ]
}

for (const [what, [urlOf, expected]] of Object.entries(ports)) {
  test(`check explains ${what}`, async t => {
    const url = `${await urlOf(t)}/token`
    const { found, code } = await checkAt(t, { env: () => ({ PLATFORM_TOKEN_ENDPOINT: url }) })
    isFinding(t, found('client'), expected)
    t.is(code, 1)
  })
}

test('check waits for a provider that never responds only as long as platform.timeout', async t => {
  const started = performance.now()
  const { found, code } = await checkAt(t, {
    prepare: idp => {
      for (const endpoint of usedEndpoints) idp.failWhen(endpoint, () => faults.hang())
    },
    env: () => ({ PLATFORM_TIMEOUT: '1' })
  })
  // By default the limit is ten seconds for each of the four requests.
  t.true(performance.now() - started < 9000)
  for (const check of ['login', 'client', 'userinfo', 'logout']) isFinding(t, found(check), 'failed 1 s → firewall')
  t.is(code, 1)
})

const place = { host: 'id.example', setting: 'platform.tokenEndpoint', timeoutSeconds: 10 }

const codes: readonly (readonly [code: string | undefined, message: string, advice: string])[] = [
  ['ENOTFOUND', 'DNS id.example ENOTFOUND', 'name platform.tokenEndpoint'],
  ['EAI_AGAIN', 'DNS respond id.example EAI_AGAIN', 'DNS servers'],
  ['ECONNREFUSED', 'id.example refuses ECONNREFUSED', 'host port platform.tokenEndpoint'],
  ['EHOSTUNREACH', 'route id.example EHOSTUNREACH', 'network firewall'],
  ['ENETUNREACH', 'route id.example ENETUNREACH', 'network firewall'],
  ['ETIMEDOUT', 'id.example respond 10 s', 'firewall HTTPS_PROXY'],
  ['EPIPE', 'id.example closed EPIPE', 'firewall proxy between'],
  ['CERT_HAS_EXPIRED', 'certificate id.example expired CERT_HAS_EXPIRED', 'clock renew'],
  ['CERT_NOT_YET_VALID', 'certificate id.example not yet CERT_NOT_YET_VALID', 'clock behind'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'id.example name ERR_TLS_CERT_ALTNAME_INVALID', 'host platform.tokenEndpoint'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'trust id.example UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'NODE_EXTRA_CA_CERTS'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'trust id.example SELF_SIGNED_CERT_IN_CHAIN', 'NODE_EXTRA_CA_CERTS'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'id.example TLS ERR_SSL_WRONG_VERSION_NUMBER', 'scheme port platform.tokenEndpoint'],
  ['EWHATEVER', 'id.example failed EWHATEVER', 'platform.tokenEndpoint network'],
  ['not a code: secret', 'id.example failed unknown reason', 'platform.tokenEndpoint'],
  [undefined, 'id.example failed unknown reason', 'platform.tokenEndpoint']
]

for (const [code, message, advice] of codes) {
  test(`check explains the error code ${code}`, t => {
    const [explained, next] = explainConnectionError(code, place)
    carries(t, explained, message)
    carries(t, next, advice)
    t.notRegex(explained, /secret/)
  })
}

const proxied: readonly (readonly [proxy: string, code: string, finding: string])[] = [
  ['http://user:hunter2@127.0.0.1:1', 'ECONNREFUSED', 'failed The proxy 127.0.0.1:1 refuses → port HTTPS_PROXY'],
  ['http://user:hunter2@proxy.corp:3128', 'ENOTFOUND', 'failed the proxy proxy.corp:3128 ENOTFOUND → HTTPS_PROXY'],
  ['http://proxy.corp:3128', 'PROXY_RESPONDED_407', 'failed The proxy proxy.corp:3128 407 → password HTTPS_PROXY'],
  ['http://proxy.corp:3128', 'PROXY_RESPONDED_403', 'failed The proxy proxy.corp:3128 403 id.example → NO_PROXY'],
  ['ftp://user:hunter2@proxy.corp', 'PROXY_NOT_HTTP', 'failed The proxy ftp only http → HTTPS_PROXY'],
  ['http://user:hunter2@:x', 'PROXY_URL_MALFORMED', 'failed The proxy malformed → HTTPS_PROXY'],
  // The host on the other side of the tunnel has this certificate.
  ['http://proxy.corp:3128', 'CERT_HAS_EXPIRED', 'failed certificate id.example → clock']
]

for (const [proxy, code, expected] of proxied) {
  test.serial(`behind a proxy, check blames the proxy only for its own failures: ${code}`, t => {
    const before = { ...process.env }
    t.teardown(() => {
      process.env = before
    })
    process.env = { HTTPS_PROXY: proxy }
    const error = new ProviderError('token', 'unreachable', 'failed', { code })
    const request = {
      name: 'The token endpoint',
      url: 'https://id.example/token',
      setting: undefined,
      timeoutSeconds: 10
    }
    const finding = findingOfError(error, request)
    isFinding(t, finding, expected)
    t.notRegex(JSON.stringify(finding), /hunter2|PROXY_(NOT|URL|RESPONDED)/)
  })
}

test('the advice about a built-in address mentions no setting', t => {
  for (const [code] of codes) {
    const [, next] = explainConnectionError(code, { ...place, setting: undefined })
    t.notRegex(next, /platform\.|undefined/)
  }
})
