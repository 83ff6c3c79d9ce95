import test from 'ava'
import { callback } from '#src/cli/check/callback.js'
import { homeUrlOf } from '#src/config/addresses.js'
import type { Config } from '#src/config/settings.js'
import { testConfig } from '../../helpers/config.js'
import { someProvider } from './checked.js'

function lines(callbackUrl: string, listening: Partial<Pick<Config, 'port' | 'host'>> = {}): string[] {
  const config = testConfig(someProvider, { platform: { callbackUrl }, port: 8080, host: undefined, ...listening })
  return callback(config).map(({ status, message, next }) => `${status} ${message}${next ? ` Next: ${next}` : ''}`)
}

const register = (url: string, home: string) => `ok Register exactly ${url} at the provider; people open ${home}.`

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
  test(`nothing is wrong with ${url} and ${JSON.stringify(listening)}`, t => {
    t.deepEqual(lines(url, listening), [register(url, home)])
  })
}

const amiss: readonly (readonly [url: string, listening: Partial<Pick<Config, 'port' | 'host'>>, line: string])[] = [
  [
    'http://localhost:3000/api/auth/callback',
    {},
    'warning The callback URL leads to port 3000, but the server listens on port 8080. Next: Make them the same (--port 3000), unless a proxy connects them.'
  ],
  [
    'http://localhost/api/auth/callback',
    {},
    'warning The callback URL leads to port 80, but the server listens on port 8080. Next: Make them the same (--port 80), unless a proxy connects them.'
  ],
  [
    'http://localhost:8080/api/auth/callback',
    { port: 0 },
    'warning The callback URL leads to port 8080, but the server listens on any free port. Next: Make them the same (--port 8080), unless a proxy connects them.'
  ],
  [
    'http://127.0.0.1:8080/api/auth/callback',
    {},
    'warning The callback URL says 127.0.0.1, but the server calls itself localhost: a login begun there does not end. Next: Open http://127.0.0.1:8080/ and nothing else, or make host and callback URL the same.'
  ],
  [
    'http://localhost:8080/api/auth/callback',
    { host: '192.168.1.5' },
    'warning The callback URL says localhost, but the server calls itself 192.168.1.5: a login begun there does not end. Next: Open http://localhost:8080/ and nothing else, or make host and callback URL the same.'
  ],
  [
    'https://localhost:8080/api/auth/callback',
    {},
    'failed The callback URL says https for port 8080, where this server itself speaks plain http. Next: Use http://localhost:8080/api/auth/callback, or a proxy that ends TLS on another port.'
  ],
  [
    'https://localhost/api/auth/callback',
    {},
    'warning https on localhost works only with a proxy on this machine that ends TLS: this server speaks plain http. Next: Without one use http://localhost:8080/api/auth/callback.'
  ],
  [
    'https://app.example:8080/api/auth/callback',
    {},
    'warning The callback URL says https for port 8080, where this server itself speaks plain http. Next: Leave the port out, unless a proxy on another machine has the same one.'
  ],
  [
    'https://App.example:443/api/auth/callback',
    {},
    'warning Browsers write the callback URL as https://app.example/api/auth/callback, and the provider compares letter by letter. Next: Set and register it in that spelling.'
  ],
  [
    'https://app.example/team/api/auth/callback',
    {},
    'ok The server answers /api/auth/callback; a proxy must take /team off the path of every request.'
  ],
  [
    'http://localhost:8080/team/api/auth/callback',
    {},
    'warning The server answers /api/auth/callback; a proxy must take /team off the path of every request. Next: Without a proxy take /team out of the callback URL.'
  ]
]

for (const [url, listening, expected] of amiss) {
  test(`what will not match in ${url} and ${JSON.stringify(listening)}`, t => {
    const [first, ...others] = lines(url, listening)
    t.is(first, register(url, homeUrlOf(url)))
    t.deepEqual(others, [expected])
  })
}
