import test from 'ava'
import { callback } from '#src/cli/check/findings/callback.js'
import { homeUrlOf } from '#src/config/addresses.js'
import type { Config } from '#src/config/settings.js'
import { testConfig } from '../../../helpers/config.js'
import { someProvider } from '../checked.js'

function lines(callbackUrl: string, listening: Partial<Pick<Config, 'port' | 'host'>> = {}): string[] {
  const config = testConfig(someProvider, { platform: { callbackUrl }, port: 8080, host: undefined, ...listening })
  return callback(config).map(({ status, message, next }) => `${status} ${message}${next ? ` Next: ${next}` : ''}`)
}

const register = (url: string, home: string) => `ok Register exactly ${url} at the provider. People open ${home}.`

const fine: readonly (readonly [url: string, listening: Partial<Pick<Config, 'port' | 'host'>>, home: string])[] = [
  ['http://localhost:8080/api/auth/callback', {}, 'http://localhost:8080/'],
  ['http://localhost:8080/api/auth/callback', { host: '0.0.0.0' }, 'http://localhost:8080/'],
  ['http://localhost:8080/api/auth/callback', { host: '::' }, 'http://localhost:8080/'],
  ['http://localhost:8080/api/auth/callback', { host: '0:0:0:0:0:0:0:0' }, 'http://localhost:8080/'],
  ['http://localhost/api/auth/callback', { port: 80 }, 'http://localhost/'],
  ['http://127.0.0.1:8080/api/auth/callback', { host: '127.0.0.1' }, 'http://127.0.0.1:8080/'],
  ['http://[::1]:8080/api/auth/callback', { host: '::1' }, 'http://[::1]:8080/'],
  ['https://app.example/api/auth/callback', {}, 'https://app.example/'],
  ['https://app.example/api/auth/callback', { host: '127.0.0.1', port: 3000 }, 'https://app.example/'],
  ['https://app.example:8443/api/auth/callback', {}, 'https://app.example:8443/']
]

for (const [url, listening, home] of fine) {
  test(`check finds no problem with ${url} and ${JSON.stringify(listening)}`, t => {
    t.deepEqual(lines(url, listening), [register(url, home)])
  })
}

const amiss: readonly (readonly [url: string, listening: Partial<Pick<Config, 'port' | 'host'>>, line: string])[] = [
  [
    'http://localhost:3000/api/auth/callback',
    {},
    'warning The callback URL leads to port 3000, but the server listens on port 8080. Next: Use the same port (--port 3000), unless a proxy forwards the requests.'
  ],
  [
    'http://localhost/api/auth/callback',
    {},
    'warning The callback URL leads to port 80, but the server listens on port 8080. Next: Use the same port (--port 80), unless a proxy forwards the requests.'
  ],
  [
    'http://localhost:8080/api/auth/callback',
    { port: 0 },
    'warning The callback URL leads to port 8080, but the server listens on any free port. Next: Use the same port (--port 8080), unless a proxy forwards the requests.'
  ],
  [
    'http://127.0.0.1:8080/api/auth/callback',
    {},
    'warning The callback URL says 127.0.0.1, but the server prints localhost as its own name. A login that begins at localhost fails, because cookies belong to one host name. Next: Open only http://127.0.0.1:8080/, or use the same name in host and in the callback URL.'
  ],
  [
    'http://localhost:8080/api/auth/callback',
    { host: '192.168.1.5' },
    'warning The callback URL says localhost, but the server prints 192.168.1.5 as its own name. A login that begins at 192.168.1.5 fails, because cookies belong to one host name. Next: Open only http://localhost:8080/, or use the same name in host and in the callback URL.'
  ],
  [
    'https://localhost:8080/api/auth/callback',
    {},
    'failed The callback URL says https for port 8080, but on this port the server itself speaks plain http. Next: Use http://localhost:8080/api/auth/callback, or a proxy that terminates TLS on another port.'
  ],
  [
    'https://localhost/api/auth/callback',
    {},
    'warning https on localhost works only with a proxy on this machine that terminates TLS, because this server speaks plain http. Next: Without a proxy, use http://localhost:8080/api/auth/callback.'
  ],
  [
    'https://app.example:8080/api/auth/callback',
    {},
    'warning The callback URL says https for port 8080, but on this port the server itself speaks plain http. Next: Leave out the port, unless a proxy on another machine uses the same port.'
  ],
  [
    'https://App.example:443/api/auth/callback',
    {},
    'warning Browsers write the callback URL as https://app.example/api/auth/callback, and the provider compares it character by character. Next: Set and register the URL in that spelling.'
  ],
  [
    'https://app.example/team/api/auth/callback',
    {},
    'ok The server answers /api/auth/callback, so a proxy must remove /team from the path of every request.'
  ],
  [
    'http://localhost:8080/team/api/auth/callback',
    {},
    'warning The server answers /api/auth/callback, so a proxy must remove /team from the path of every request. Next: Without a proxy, remove /team from the callback URL.'
  ]
]

for (const [url, listening, expected] of amiss) {
  test(`check explains the problem with ${url} and ${JSON.stringify(listening)}`, t => {
    const [first, ...others] = lines(url, listening)
    t.is(first, register(url, homeUrlOf(url)))
    t.deepEqual(others, [expected])
  })
}
