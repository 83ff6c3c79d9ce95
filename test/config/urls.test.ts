import test from 'ava'
import { basePathOf, homeUrlOf, isLocalRequest, localUrlOf, maskUrl, providerUrl } from '#src/config/types/urls.js'

const urls: readonly (readonly [url: string, isSafe: boolean])[] = [
  ['https://idp.example', true],
  ['https://localhost:8443/x', true],
  ['http://localhost:8080/x', true],
  ['http://LOCALHOST/x', true],
  ['http://127.0.0.1:8080', true],
  ['http://127.1.2.3', true],
  ['http://[::1]:8080', true],
  ['http://2130706433', true],
  ['http://idp.example', false],
  ['http://localhost.evil.example', false],
  ['http://evil.example/localhost', false],
  ['http://localhost@evil.example', false],
  ['http://127.0.0.1.evil.example', false],
  ['http://127.evil.example', false],
  ['http://128.0.0.1', false],
  ['http://10.0.0.1', false],
  ['http://0.0.0.0', false],
  ['http://[::ffff:127.0.0.1]', false],
  ['http://[::2]', false],
  ['ftp://localhost', false],
  ['file:///etc/passwd', false],
  ['localhost', false],
  ['', false]
]

for (const [url, isSafe] of urls) {
  test(`secrets ${isSafe ? 'may' : 'must not'} be sent to "${url}"`, t => {
    t.is('value' in providerUrl.parse(url), isSafe)
  })
}

for (const [callbackUrl, basePath, homeUrl] of [
  ['https://app.example.com/api/auth/callback', '', 'https://app.example.com/'],
  ['https://app.example.com/tools/a/api/auth/callback?x=y', '/tools/a', 'https://app.example.com/tools/a/'],
  ['http://localhost:8080/api/auth/callback', '', 'http://localhost:8080/']
] as const) {
  test(`the base path and the start page are derived from the callback URL ${callbackUrl}`, t => {
    t.is(basePathOf(callbackUrl), basePath)
    t.is(homeUrlOf(callbackUrl), homeUrl)
  })
}

for (const [host, url] of [
  [undefined, 'http://localhost:8080'],
  ['0.0.0.0', 'http://localhost:8080'],
  ['0', 'http://localhost:8080'],
  ['::', 'http://localhost:8080'],
  ['0:0:0:0:0:0:0:0', 'http://localhost:8080'],
  ['127.0.0.1', 'http://127.0.0.1:8080'],
  ['::1', 'http://[::1]:8080'],
  ['LocalHost', 'http://localhost:8080'],
  ['192.168.1.5', 'http://192.168.1.5:8080'],
  ['app_1.internal', 'http://app_1.internal:8080'],
  ['fe80::1%eth0', 'http://[fe80::1%eth0]:8080']
] as const) {
  test(`the local URL for the host ${host ?? 'undefined'} is ${url}`, t => {
    t.is(localUrlOf({ host, port: 8080 }), url)
  })
}

test('the default port of http is omitted from the local URL', t => {
  t.is(localUrlOf({ host: undefined, port: 80 }), 'http://localhost')
})

const requests: readonly (readonly [peer: string | undefined, host: string | undefined, isLocal: boolean])[] = [
  ['127.0.0.1', 'localhost:8080', true],
  ['::ffff:127.0.0.1', '127.0.0.1:3000', true],
  ['::1', '[::1]:8080', true],
  ['127.8.9.10', 'app.example', true],
  ['127.0.0.1', 'APP.example:8443', true],
  ['127.0.0.1', 'evil.example', false],
  ['127.0.0.1', 'app.example.evil.example', false],
  ['127.0.0.1', 'evil.localhost', false],
  ['127.0.0.1', '192.168.1.7:8080', false],
  ['127.0.0.1', '', false],
  ['127.0.0.1', undefined, false],
  ['192.168.1.7', 'localhost:8080', false],
  ['192.168.1.7', 'app.example', false],
  ['::ffff:192.168.1.7', 'localhost', false],
  ['fe80::1', 'localhost', false],
  ['::127.0.0.1', 'localhost', false],
  [undefined, 'localhost', false]
]

for (const [remoteAddress, host, isLocal] of requests) {
  test(`a request of ${remoteAddress} to ${host} ${isLocal ? 'counts' : 'does not count'} as local`, t => {
    const callbackUrl = 'https://app.example/api/auth/callback'
    t.is(isLocalRequest({ socket: { remoteAddress }, headers: { host } }, callbackUrl), isLocal)
  })
}

for (const [url, masked] of [
  ['https://idp.example/authorize', 'https://idp.example/authorize'],
  ['https://u:pw@idp.example/a', 'https://***@idp.example/a'],
  ['https://u:p@w@idp.example/a', 'https://***@idp.example/a'],
  ['https://u:p/w@idp.example', 'https://***@idp.example'],
  ['https://u:p#w@idp.example', 'https://***'],
  ['https://u:p?w@idp.example', 'https://***'],
  // The @ may belong to the query.
  ['https://idp.example/a?hint=x@y&client_secret=pw', 'https://***'],
  ['https://idp.example/a?client_secret=pw#pw', 'https://idp.example/a'],
  ['https:\\\\u:pw@idp.example', 'https:\\\\***@idp.example'],
  ['https:u:pw@idp.example', 'https:***@idp.example'],
  ['u:pw@proxy.corp:3128', '***@proxy.corp:3128'],
  ['proxy.corp:3128', 'proxy.corp:3128'],
  ['ftp://u:pw@host', '***@host'],
  ['rediss://u:pw@a:1,b:2/0?sentinel=main&sentinelPassword=pw', 'rediss://***@a:1,b:2/0'],
  ['https://u:pw\n@idp.example\npw', 'https://***@idp.example\npw'],
  ['', '']
] as const) {
  test(`${JSON.stringify(url)} is shown as ${JSON.stringify(masked)}`, t => t.is(maskUrl(url), masked))
}
