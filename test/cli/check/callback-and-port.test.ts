import { createServer, type RequestListener } from 'node:http'
import test from 'ava'
import { checkCallback, checkPort } from '#src/cli/check/callback-and-port.js'
import type { Config } from '#src/config/settings.js'
import { homeUrlOf } from '#src/config/urls.js'
import { type TestSettings, testConfig } from '../../helpers/config.js'
import { freePort, listen } from '../../helpers/ports.js'
import { startTestServer } from '../../helpers/server.js'
import { areFindings, someProvider } from './checked.js'

type Listening = Partial<Pick<Config, 'port' | 'host'>>

const local = 'http://localhost:8080/api/auth/callback'

const callbacks: readonly (readonly [url: string, listening: Listening, ...more: string[]])[] = [
  [local, {}],
  [local, { host: '0.0.0.0' }],
  [local, { host: '::' }],
  [local, { host: '0:0:0:0:0:0:0:0' }],
  ['http://localhost/api/auth/callback', { port: 80 }],
  ['http://127.0.0.1:8080/api/auth/callback', { host: '127.0.0.1' }],
  ['http://[::1]:8080/api/auth/callback', { host: '::1' }],
  ['https://app.example/api/auth/callback', {}],
  ['https://app.example/api/auth/callback', { host: '127.0.0.1', port: 3000 }],
  ['https://app.example:8443/api/auth/callback', {}],
  ['http://localhost:3000/api/auth/callback', {}, 'warning port 3000 8080 → --port 3000'],
  ['http://localhost/api/auth/callback', {}, 'warning port 80 8080 → --port 80'],
  [local, { port: 0 }, 'warning port 8080 any free → --port 8080'],
  [
    'http://127.0.0.1:8080/api/auth/callback',
    {},
    'warning 127.0.0.1 localhost cookies → http://127.0.0.1:8080/ "host"'
  ],
  [local, { host: '192.168.1.5' }, `warning localhost 192.168.1.5 cookies → http://localhost:8080/ "host"`],
  ['https://localhost:8080/api/auth/callback', {}, `failed https 8080 plain http → ${local} TLS`],
  ['https://localhost/api/auth/callback', {}, `warning https localhost proxy TLS → ${local}`],
  ['https://app.example:8080/api/auth/callback', {}, 'warning https 8080 plain http → Remove port'],
  ['https://App.example:443/api/auth/callback', {}, 'warning https://app.example/api/auth/callback → spelling'],
  ['https://app.example/team/api/auth/callback', {}, 'ok proxy remove /team'],
  ['http://localhost:8080/team/api/auth/callback', {}, 'warning proxy remove /team → remove /team']
]

for (const [callbackUrl, listening, ...more] of callbacks) {
  test(`check says which URL to register, and finds ${more.length} problems with ${callbackUrl} and ${JSON.stringify(listening)}`, t => {
    const config = testConfig(someProvider, { platform: { callbackUrl }, port: 8080, host: undefined, ...listening })
    areFindings(t, checkCallback(config), [`ok exactly ${callbackUrl} ${homeUrlOf(callbackUrl)}`, ...more])
  })
}

const findingsOf = (settings: TestSettings) => checkPort(testConfig(someProvider, settings))
const inUse = (port: number, flag: string) => `${port} in use another program → ${flag}`

test('check reports a free port and does not keep it', async t => {
  const port = await freePort()
  for (const _ of ['first', 'second']) areFindings(t, await findingsOf({ port }), [`ok ${port} free`])
})

test('check accepts port 0, for which the system chooses a free port', async t => {
  const free = 'ok 0 system chooses'
  areFindings(t, await findingsOf({ port: 0, metrics: { address: '127.0.0.1:0' } }), [free, free])
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
    areFindings(t, await findingsOf({ port }), [`failed ${inUse(port, '--port')}`])
  })
}

test('check fails for a metrics port used by another program', async t => {
  const port = await listen(t, createServer())
  const [, metrics] = await findingsOf({ port: 0, metrics: { address: `127.0.0.1:${port}` } })
  areFindings(t, metrics ? [metrics] : [], [`failed ${inUse(port, '--metrics-address')}`])
})

test('check warns if this server itself already uses the port and the metrics port', async t => {
  const { server } = await startTestServer(t, { settings: { metrics: { address: '127.0.0.1:0' } } })
  const metricsPort = server.metricsPort as number
  areFindings(t, await findingsOf({ port: server.port, metrics: { address: `127.0.0.1:${metricsPort}` } }), [
    `warning platform-auth-server already running ${server.port} → --port`,
    `warning ${inUse(metricsPort, '--metrics-address')}`
  ])
})

test('check fails for a host that is not an address of this machine', async t => {
  // RFC 5737: no machine has this address.
  areFindings(t, await findingsOf({ port: 0, host: '192.0.2.1' }), ['failed 192.0.2.1 not this machine → --host'])
})
