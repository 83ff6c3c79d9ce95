import { createServer, type RequestListener } from 'node:http'
import test from 'ava'
import { checkCallback, checkPort } from '#src/cli/check/callback-and-port.js'
import type { Config } from '#src/config/settings.js'
import { type TestSettings, testConfig } from '../../helpers/config.js'
import { testSections } from '../../helpers/golden.js'
import { freePort, listen } from '../../helpers/ports.js'
import { startTestServer } from '../../helpers/server.js'
import { isGolden, lineOf, someProvider } from './checked.js'

testSections('test/cli/check/callback.txt', (_t, title) => {
  const [callbackUrl = '', listening = ''] = title.split(' with ')
  const address: Partial<Pick<Config, 'port' | 'host'>> = JSON.parse(listening)
  const settings = { platform: { callbackUrl }, port: 8080, host: undefined, ...address }
  return [...checkCallback(testConfig(someProvider, settings))].map(lineOf).join('\n')
})

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
