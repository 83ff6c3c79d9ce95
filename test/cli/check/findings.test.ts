import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import test, { type ExecutionContext } from 'ava'
import { explainConnectionError } from '#src/cli/check/findings.js'
import { selfSignedCertificate } from '../../helpers/certificate.js'
import { faults } from '../../helpers/hostile-idp/index.js'
import { listen } from '../../helpers/ports.js'
import { checkAt } from './checked.js'

const line = async (t: ExecutionContext, tokenEndpoint: string) => {
  const checked = await checkAt(t, { env: () => ({ PLATFORM_TOKEN_ENDPOINT: tokenEndpoint }) })
  t.is(checked.code, 1)
  return checked.line('client')
}

test('check explains a closed port', async t => {
  t.is(
    await line(t, 'http://127.0.0.1:1/token'),
    'failed client The token endpoint cannot be reached: 127.0.0.1:1 refuses connections (ECONNREFUSED). Next: Check host and port in platform.tokenEndpoint. If they are right, no server listens there or a firewall rejects the connection.'
  )
})

test('check explains a certificate that is not trusted', async t => {
  const port = await listen(t, createHttpsServer(selfSignedCertificate()))
  t.is(
    await line(t, `https://localhost:${port}/token`),
    `failed client The token endpoint cannot be reached: This machine does not trust the certificate of localhost:${port} (DEPTH_ZERO_SELF_SIGNED_CERT). Next: If a private certificate authority or a TLS-inspecting proxy signed it, set NODE_EXTRA_CA_CERTS to the file with the certificate of that authority.`
  )
})

test('check explains an https address at which the server speaks plain http', async t => {
  const port = await listen(t, createHttpServer())
  t.regex(
    (await line(t, `https://localhost:${port}/token`)) ?? '',
    /^failed client The token endpoint cannot be reached: localhost:\d+ does not speak TLS as expected \((EPROTO|ERR_SSL_\w+)\)\. Next: Check scheme and port in platform\.tokenEndpoint\. The port must speak TLS\.$/
  )
})

test('check waits for a provider that never responds only as long as platform.timeout', async t => {
  const started = performance.now()
  const { lines, code } = await checkAt(t, {
    prepare: idp => {
      for (const endpoint of ['authorize', 'token', 'userinfo', 'revoke'] as const) {
        idp.failWhen(endpoint, () => faults.hang())
      }
    },
    env: () => ({ PLATFORM_TIMEOUT: '1' })
  })
  // By default the limit is ten seconds for each of the four requests.
  t.true(performance.now() - started < 9000)
  const hung = lines.filter(line => line.includes('did not respond within 1 s.'))
  const names = hung.map(line => line.split(' ', 2).join(' '))
  t.deepEqual(names, ['failed login', 'failed client', 'failed userinfo', 'failed logout'])
  t.regex(hung[1] ?? '', /within 1 s\. Next: Check whether a firewall blocks the connection,/)
  t.is(code, 1)
})

const place = { host: 'id.example', setting: 'platform.tokenEndpoint', timeoutSeconds: 10 }

const codes: readonly (readonly [code: string | undefined, message: string, next: RegExp])[] = [
  ['ENOTFOUND', 'DNS does not know the name of id.example (ENOTFOUND).', /^Check the name in platform\.tokenEndpoint/],
  ['EAI_AGAIN', 'DNS did not respond to the query for id.example (EAI_AGAIN).', /DNS servers/],
  ['ECONNREFUSED', 'id.example refuses connections (ECONNREFUSED).', /^Check host and port/],
  ['EHOSTUNREACH', 'There is no network route to id.example (EHOSTUNREACH).', /network and the firewall/],
  ['ENETUNREACH', 'There is no network route to id.example (ENETUNREACH).', /network and the firewall/],
  ['ETIMEDOUT', 'id.example did not respond within 10 s.', /firewall blocks the connection/],
  ['EPIPE', 'id.example closed the connection (EPIPE).', /between this machine and that host/],
  ['CERT_HAS_EXPIRED', 'The certificate of id.example has expired (CERT_HAS_EXPIRED).', /^Check the clock/],
  [
    'CERT_NOT_YET_VALID',
    'The certificate of id.example is not valid yet (CERT_NOT_YET_VALID).',
    /which is probably behind/
  ],
  [
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'The certificate of id.example is for a different name (ERR_TLS_CERT_ALTNAME_INVALID).',
    /^Check the host in platform\.tokenEndpoint/
  ],
  [
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'This machine does not trust the certificate of id.example (UNABLE_TO_VERIFY_LEAF_SIGNATURE).',
    /NODE_EXTRA_CA_CERTS/
  ],
  [
    'SELF_SIGNED_CERT_IN_CHAIN',
    'This machine does not trust the certificate of id.example (SELF_SIGNED_CERT_IN_CHAIN).',
    /NODE_EXTRA_CA_CERTS/
  ],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'id.example does not speak TLS as expected (ERR_SSL_WRONG_VERSION_NUMBER).', /TLS/],
  ['EWHATEVER', 'The connection to id.example failed (EWHATEVER).', /^Check platform\.tokenEndpoint and the network/],
  ['not a code: secret', 'The connection to id.example failed (unknown reason).', /^Check platform\.tokenEndpoint and/],
  [undefined, 'The connection to id.example failed (unknown reason).', /^Check platform\.tokenEndpoint and/]
]

for (const [code, message, next] of codes) {
  test(`check explains the error code ${code}`, t => {
    const [explained, advice] = explainConnectionError(code, place)
    t.is(explained, message)
    t.regex(advice, next)
  })
}

test('the advice about a built-in address mentions no setting', t => {
  const [, next] = explainConnectionError('ENOTFOUND', { ...place, setting: undefined })
  t.is(next, 'Check the name, and whether this machine can resolve other names.')
})
