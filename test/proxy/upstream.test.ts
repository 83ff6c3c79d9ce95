// The connections to upstream hosts: TLS, connecting, and behaviour that depends on the bytes of a connection.
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import test, { type ExecutionContext } from 'ava'
import {
  createUpstreams,
  type UpstreamError,
  type UpstreamOptions,
  type UpstreamRequest
} from '#src/web/proxy/upstream.js'
import { selfSignedCertificate } from '../helpers/certificate.js'
import { freePort, listen } from '../helpers/ports.js'
import { startFixedUpstream, startUpstream } from '../helpers/upstream.js'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

function request(origin: string, more: Partial<UpstreamRequest> = {}): UpstreamRequest {
  return { origin, target: '/x', method: 'GET', headers: [], body: undefined, silenceMs: 10_000, ...more }
}

const limits = { connectTimeoutMs: 5000, connectionsPerHost: 100 }

function start(t: ExecutionContext, options: Partial<UpstreamOptions> = {}) {
  const upstreams = createUpstreams({ ...limits, ...options })
  t.teardown(() => upstreams.close())
  /** Returns the status and the text of the response, or the kind of failure. */
  return (sent: UpstreamRequest) =>
    new Promise<string>(resolve => {
      let text = ''
      upstreams.send(sent, {
        responded: statusCode => {
          text = `${statusCode} `
        },
        received: chunk => {
          text += String(chunk)
          return true
        },
        ended: () => resolve(text),
        failed: ({ reason }: UpstreamError) => resolve(reason)
      })
    })
}

/** Starts a TLS server that calls `react` when a request arrives. */
async function startTls(t: ExecutionContext, react: (socket: Socket) => void) {
  const certificate = selfSignedCertificate()
  const server = createTlsServer(certificate, socket => {
    socket.on('error', () => {})
    socket.on('data', () => react(socket))
  })
  const port = await listen(t, server)
  return { ca: certificate.cert, byName: `https://localhost:${port}`, byAddress: `https://127.0.0.1:${port}` }
}

test('a certificate that is not trusted or is for another host is rejected, and the next request connects again', async t => {
  const { ca, byName, byAddress } = await startTls(t, socket => void socket.write(ok))
  t.is(await start(t)(request(byName)), 'unreachable')
  const ask = start(t, { ca })
  t.is(await ask(request(byAddress)), 'unreachable')
  t.is(await ask(request(byAddress)), 'unreachable')
  t.is(await ask(request(byName)), '200 ok')
})

test('over TLS, too, a request that fails on a new connection is not repeated', async t => {
  let connections = 0
  const { ca, byName } = await startTls(t, socket => {
    connections += 1
    socket.destroy()
  })
  t.is(await start(t, { ca })(request(byName)), 'invalid_response')
  t.is(connections, 1)
})

test('if a host does not accept the connection in time, the request fails with a timeout', async t => {
  const port = await listen(t, createServer())
  const ask = start(t, { connectTimeoutMs: 300 })
  // TCP connects, but the other side does not respond to the TLS handshake, which is part of connecting.
  t.is(await ask(request(`https://127.0.0.1:${port}`)), 'timeout')
})

test('a 100 Continue response that was not requested is treated as an invalid response', async t => {
  const upstream = await startFixedUpstream(t, `HTTP/1.1 100 Continue\r\n\r\n${ok}`)
  t.is(await start(t)(request(upstream.origin)), 'invalid_response')
})

test('a request that is aborted before it is sent is not sent later', async t => {
  const upstream = await startFixedUpstream(t, ok)
  const upstreams = createUpstreams(limits)
  t.teardown(() => upstreams.close())
  const fail = () => t.fail('an aborted request must report nothing')
  const exchange = upstreams.send(request(upstream.origin), {
    responded: fail,
    received: () => true,
    ended: fail,
    failed: fail
  })
  exchange.abort()
  t.is(await start(t)(request(upstream.origin)), '200 ok')
  t.deepEqual(upstream.received.map(text => text()).filter(text => text !== '').length, 1)
})

test('no more connections are opened to a host than allowed, and all requests get a response', async t => {
  const upstream = await startUpstream(t)
  const ask = start(t, { connectionsPerHost: 2 })
  const answers = await Promise.all(Array.from({ length: 6 }, () => ask(request(upstream.origin))))
  t.deepEqual([...new Set(answers)], ['200 {}'])
  t.is(upstream.connections.length, 2)
})

test('requests that wait for a connection fail as well if the host cannot be reached', async t => {
  const ask = start(t, { connectionsPerHost: 1 })
  const origin = `http://127.0.0.1:${await freePort()}`
  const answers = await Promise.all(Array.from({ length: 3 }, () => ask(request(origin))))
  t.deepEqual(answers, ['unreachable', 'unreachable', 'unreachable'])
})
