import { createServer, type RequestListener } from 'node:http'
import test from 'ava'
import { port } from '#src/cli/check/findings/port.js'
import type { Config } from '#src/config/settings.js'
import { type DeepPartial, testConfig } from '../../../helpers/config.js'
import { freePort, listen } from '../../../helpers/ports.js'
import { startTestServer } from '../../../helpers/server.js'
import { someProvider } from '../checked.js'

async function lines(overrides: DeepPartial<Config>): Promise<string[]> {
  const found = await port(testConfig(someProvider, overrides))
  return found.map(({ status, message, next }) => `${status} ${message}${next ? ` Next: ${next}` : ''}`)
}

test('check reports a free port and does not keep it', async t => {
  const free = await freePort()
  t.deepEqual(await lines({ port: free }), [`ok Port ${free} is free.`])
  t.deepEqual(await lines({ port: free }), [`ok Port ${free} is free.`])
})

test('check accepts port 0, for which the system chooses a free port', async t => {
  t.deepEqual(await lines({ port: 0, metrics: { port: 0 } }), [
    'ok With --port 0, the system chooses a free port.',
    'ok With --metrics-port 0, the system chooses a free port.'
  ])
})

const others: Readonly<Record<string, RequestListener>> = {
  'answers something else': (_request, response) => response.end('hello'),
  'has a health check of its own': (_request, response) =>
    response.writeHead(200, { 'content-length': 15 }).end('{"status":"up"}'),
  'answers without end': (_request, response) => {
    response.writeHead(200)
    response.write('{')
  },
  'cuts the connection': request => request.socket.destroy()
}

for (const [what, listener] of Object.entries(others)) {
  test(`check fails for a port used by another program that ${what}`, async t => {
    const port = await listen(t, createServer(listener))
    t.deepEqual(await lines({ port }), [
      `failed Port ${port} is in use by another program. Next: Stop that program, or choose another port with --port.`
    ])
  })
}

test('check warns if this server itself already uses the port and the metrics port', async t => {
  const { server } = await startTestServer(t, { overrides: { metrics: { port: 0, host: '127.0.0.1' } } })
  const metricsPort = server.metricsPort as number
  t.deepEqual(await lines({ port: server.port, metrics: { port: metricsPort } }), [
    `warning A platform-auth-server is already running on port ${server.port}. Next: Stop it before you start another, or choose another port with --port.`,
    `warning Port ${metricsPort} is in use by another program. Next: Stop that program, or choose another port with --metrics-port.`
  ])
})

test('check fails for a metrics port used by another program', async t => {
  const metricsPort = await listen(
    t,
    createServer((_request, response) => response.end())
  )
  t.deepEqual(
    (await lines({ port: 0, metrics: { port: metricsPort } }))[1],
    `failed Port ${metricsPort} is in use by another program. Next: Stop that program, or choose another port with --metrics-port.`
  )
})

test('check fails for a host that is not an address of this machine', async t => {
  // RFC 5737: no machine has this address.
  t.deepEqual(await lines({ port: 0, host: '192.0.2.1' }), [
    'failed 192.0.2.1 is not an address of this machine. Next: Choose another host with --host, or remove --host.'
  ])
})

test('check fails for a metrics host that is not an address of this machine', async t => {
  const [, ofMetrics] = await lines({ port: 0, metrics: { port: 0, host: '192.0.2.1' } })
  t.is(
    ofMetrics,
    'failed 192.0.2.1 is not an address of this machine. Next: Choose another host with PLATFORM_AUTH_METRICS_HOST, or remove PLATFORM_AUTH_METRICS_HOST.'
  )
})
