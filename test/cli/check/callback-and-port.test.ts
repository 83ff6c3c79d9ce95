import { createServer, type RequestListener } from 'node:http'
import test from 'ava'
import { checkCallback, checkPort } from '#src/cli/check/callback-and-port.js'
import type { Config } from '#src/config/settings.js'
import { homeUrlOf } from '#src/config/urls.js'
import { type TestSettings, testConfig } from '../../helpers/config.js'
import { freePort, listen } from '../../helpers/ports.js'
import { startTestServer } from '../../helpers/server.js'
import { someProvider } from './checked.js'

function callbackLines(callbackUrl: string, listening: Partial<Pick<Config, 'port' | 'host'>> = {}): string[] {
  const config = testConfig(someProvider, { platform: { callbackUrl }, port: 8080, host: undefined, ...listening })
  return checkCallback(config).map(({ status, message, next }) => `${status} ${message}${next ? ` Next: ${next}` : ''}`)
}

const register = (url: string, home: string) => `ok Register exactly ${url} with the provider. Users open ${home}.`

const rightCallbacks: readonly (readonly [
  url: string,
  listening: Partial<Pick<Config, 'port' | 'host'>>,
  home: string
])[] = [
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

for (const [url, listening, home] of rightCallbacks) {
  test(`check finds no problem with ${url} and ${JSON.stringify(listening)}`, t => {
    t.deepEqual(callbackLines(url, listening), [register(url, home)])
  })
}

const wrongCallbacks: readonly (readonly [
  url: string,
  listening: Partial<Pick<Config, 'port' | 'host'>>,
  line: string
])[] = [
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
    'warning The callback URL says 127.0.0.1, but the server prints the name localhost. A login that begins at localhost fails, because cookies belong to one host name. Next: Open only http://127.0.0.1:8080/, or use the same name in the setting "host" and in the callback URL.'
  ],
  [
    'http://localhost:8080/api/auth/callback',
    { host: '192.168.1.5' },
    'warning The callback URL says localhost, but the server prints the name 192.168.1.5. A login that begins at 192.168.1.5 fails, because cookies belong to one host name. Next: Open only http://localhost:8080/, or use the same name in the setting "host" and in the callback URL.'
  ],
  [
    'https://localhost:8080/api/auth/callback',
    {},
    'failed The callback URL says https for port 8080, but on this port the server itself speaks plain http. Next: Use http://localhost:8080/api/auth/callback, or a proxy that terminates TLS on a different port.'
  ],
  [
    'https://localhost/api/auth/callback',
    {},
    'warning https on localhost works only with a proxy on this machine that terminates TLS, because this server speaks plain http. Next: Without a proxy, use http://localhost:8080/api/auth/callback.'
  ],
  [
    'https://app.example:8080/api/auth/callback',
    {},
    'warning The callback URL says https for port 8080, but on this port the server itself speaks plain http. Next: Remove the port, unless a proxy on another machine uses the same port.'
  ],
  [
    'https://App.example:443/api/auth/callback',
    {},
    'warning Browsers write the callback URL as https://app.example/api/auth/callback, and the provider compares callback URLs character by character. Next: Set and register the URL in that spelling.'
  ],
  [
    'https://app.example/team/api/auth/callback',
    {},
    'ok The server serves /api/auth/callback, so a proxy must remove /team from the path of every request.'
  ],
  [
    'http://localhost:8080/team/api/auth/callback',
    {},
    'warning The server serves /api/auth/callback, so a proxy must remove /team from the path of every request. Next: If there is no proxy, remove /team from the callback URL.'
  ]
]

for (const [url, listening, expected] of wrongCallbacks) {
  test(`check explains the problem with ${url} and ${JSON.stringify(listening)}`, t => {
    const [first, ...others] = callbackLines(url, listening)
    t.is(first, register(url, homeUrlOf(url)))
    t.deepEqual(others, [expected])
  })
}

async function portLines(settings: TestSettings): Promise<string[]> {
  const found = await checkPort(testConfig(someProvider, settings))
  return found.map(({ status, message, next }) => `${status} ${message}${next ? ` Next: ${next}` : ''}`)
}

test('check reports a free port and does not keep it', async t => {
  const free = await freePort()
  t.deepEqual(await portLines({ port: free }), [`ok Port ${free} is free.`])
  t.deepEqual(await portLines({ port: free }), [`ok Port ${free} is free.`])
})

test('check accepts port 0, for which the system chooses a free port', async t => {
  t.deepEqual(await portLines({ port: 0, metrics: { address: '127.0.0.1:0' } }), [
    'ok With port 0, the system chooses a free port.',
    'ok With port 0, the system chooses a free port.'
  ])
})

const otherPrograms: Readonly<Record<string, RequestListener>> = {
  'sends a different response': (_request, response) => response.end('hello'),
  'has a health check of its own': (_request, response) =>
    response.writeHead(200, { 'content-length': 15 }).end('{"status":"up"}'),
  'never completes its response': (_request, response) => {
    response.writeHead(200)
    response.write('{')
  },
  'cuts the connection': request => request.socket.destroy()
}

for (const [what, listener] of Object.entries(otherPrograms)) {
  test(`check fails for a port used by another program that ${what}`, async t => {
    const port = await listen(t, createServer(listener))
    t.deepEqual(await portLines({ port }), [
      `failed Port ${port} is in use by another program. Next: Stop that program, or choose a different port with --port.`
    ])
  })
}

test('check warns if this server itself already uses the port and the metrics port', async t => {
  const { server } = await startTestServer(t, { settings: { metrics: { address: '127.0.0.1:0' } } })
  const metricsPort = server.metricsPort as number
  t.deepEqual(await portLines({ port: server.port, metrics: { address: `127.0.0.1:${metricsPort}` } }), [
    `warning A platform-auth-server is already running on port ${server.port}. Next: Stop it before you start another, or choose a different port with --port.`,
    `warning Port ${metricsPort} is in use by another program. Next: Stop that program, or choose a different port with --metrics-address.`
  ])
})

test('check fails for a metrics port used by another program', async t => {
  const metricsPort = await listen(
    t,
    createServer((_request, response) => response.end())
  )
  t.deepEqual(
    (await portLines({ port: 0, metrics: { address: `127.0.0.1:${metricsPort}` } }))[1],
    `failed Port ${metricsPort} is in use by another program. Next: Stop that program, or choose a different port with --metrics-address.`
  )
})

test('check fails for a host that is not an address of this machine', async t => {
  // RFC 5737: no machine has this address.
  t.deepEqual(await portLines({ port: 0, host: '192.0.2.1' }), [
    'failed 192.0.2.1 is not an address of this machine. Next: Choose a different host with --host, or remove --host.'
  ])
})
