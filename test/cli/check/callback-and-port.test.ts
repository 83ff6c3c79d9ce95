import { createServer, type RequestListener } from 'node:http'
import test from 'ava'
import { checkCallback, checkPort } from '#src/cli/check/callback-and-port.js'
import type { Config } from '#src/config/settings.js'
import { type TestSettings, testConfig } from '../../helpers/config.js'
import { freePort, listen } from '../../helpers/ports.js'
import { startTestServer } from '../../helpers/server.js'
import { isGolden, someProvider } from './checked.js'

type Listening = Partial<Pick<Config, 'port' | 'host'>>

const local = 'http://localhost:8080/api/auth/callback'

const callbacks: readonly (readonly [url: string, listening: Listening])[] = [
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
  ['http://localhost:3000/api/auth/callback', {}],
  ['http://localhost/api/auth/callback', {}],
  [local, { port: 0 }],
  ['http://127.0.0.1:8080/api/auth/callback', {}],
  [local, { host: '192.168.1.5' }],
  ['https://localhost:8080/api/auth/callback', {}],
  ['https://localhost/api/auth/callback', {}],
  ['https://app.example:8080/api/auth/callback', {}],
  ['https://App.example:443/api/auth/callback', {}],
  ['https://app.example/team/api/auth/callback', {}],
  ['http://localhost:8080/team/api/auth/callback', {}]
]

for (const [callbackUrl, listening] of callbacks) {
  test(`callback: ${callbackUrl} with ${JSON.stringify(listening)}`, t => {
    const config = testConfig(someProvider, { platform: { callbackUrl }, port: 8080, host: undefined, ...listening })
    isGolden(t, [...checkCallback(config)])
  })
}

const findingsOf = (settings: TestSettings) => checkPort(testConfig(someProvider, settings))

test('port: a free port, which check does not keep', async t => {
  const port = await freePort()
  isGolden(t, [...(await findingsOf({ port })), ...(await findingsOf({ port }))])
})

test('port: 0, for which the system chooses a free port', async t =>
  isGolden(t, await findingsOf({ port: 0, metrics: { address: '127.0.0.1:0' } })))

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
  test(`port: another program, which ${what}`, async t =>
    isGolden(t, await findingsOf({ port: await listen(t, createServer(listener)) })))
}

test('port: a metrics port used by another program', async t => {
  const port = await listen(t, createServer())
  isGolden(t, await findingsOf({ port: 0, metrics: { address: `127.0.0.1:${port}` } }))
})

test('port: this server itself already uses the port and the metrics port', async t => {
  const { server } = await startTestServer(t, { settings: { metrics: { address: '127.0.0.1:0' } } })
  isGolden(t, await findingsOf({ port: server.port, metrics: { address: `127.0.0.1:${server.metricsPort}` } }))
})

// RFC 5737: no machine has this address.
test('port: a host that is not an address of this machine', async t =>
  isGolden(t, await findingsOf({ port: 0, host: '192.0.2.1' })))
