import test, { type ExecutionContext } from 'ava'
import { outboundProxy } from '#src/config/outbound-proxy.js'

/** proxy-from-env reads the environment of the process, so the tests in this file are serial. */
function withEnvironment(t: ExecutionContext, given: Record<string, string>) {
  const before = process.env
  process.env = given
  t.teardown(() => {
    process.env = before
  })
}

const provider = 'https://developer.api.autodesk.com/authentication/v2/token'

const cases: readonly (readonly [given: Record<string, string>, address: string, proxy: string | undefined])[] = [
  [{}, provider, undefined],
  [{ HTTPS_PROXY: 'http://proxy.corp:3128' }, provider, 'http://proxy.corp:3128'],
  [{ https_proxy: 'http://proxy.corp:3128' }, provider, 'http://proxy.corp:3128'],
  [{ HTTPS_PROXY: 'proxy.corp:3128' }, provider, 'http://proxy.corp:3128'],
  [{ HTTPS_PROXY: 'https://proxy.corp:3129' }, provider, 'https://proxy.corp:3129'],
  [{ ALL_PROXY: 'http://proxy.corp:3128' }, provider, 'http://proxy.corp:3128'],
  [{ HTTP_PROXY: 'http://proxy.corp:3128' }, provider, undefined],
  [{ HTTP_PROXY: 'http://proxy.corp:3128' }, 'http://plain.example/', 'http://proxy.corp:3128'],
  [{ HTTPS_PROXY: 'http://proxy.corp:3128', NO_PROXY: '.autodesk.com' }, provider, undefined],
  [{ HTTPS_PROXY: 'http://proxy.corp:3128', NO_PROXY: 'id.example' }, provider, 'http://proxy.corp:3128'],
  [{ HTTPS_PROXY: 'http://proxy.corp:3128', no_proxy: '*' }, provider, undefined],
  [
    { HTTPS_PROXY: 'http://proxy.corp:3128', HTTP_PROXY: 'http://proxy.corp:3128' },
    'http://127.0.0.1:9000/',
    undefined
  ],
  ...['localhost', 'localhost.', 'app.localhost', 'app.localhost.', '[::1]', '127.0.0.1.', '[::ffff:127.1.2.3]'].map(
    host => [{ HTTPS_PROXY: 'http://proxy.corp:3128' }, `https://${host}:8443/`, undefined] as const
  ),
  ...['localhost.example', 'notlocalhost', '[::ffff:10.0.0.1]'].map(
    host => [{ HTTPS_PROXY: 'http://proxy.corp:3128' }, `https://${host}:8443/`, 'http://proxy.corp:3128'] as const
  )
]

for (const [given, address, proxy] of cases) {
  test.serial(`with ${JSON.stringify(given)} calls to ${new URL(address).host} use ${proxy ?? 'no proxy'}`, t => {
    withEnvironment(t, given)
    t.is(outboundProxy(address), proxy)
  })
}
