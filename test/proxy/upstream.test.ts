// The connections to upstream hosts: TLS, connecting, and behaviour that depends on the bytes of a connection.
import { createServer, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { createServer as createTlsServer } from 'node:tls'
import test, { type ExecutionContext } from 'ava'
import {
  createUpstreams,
  type UpstreamError,
  type UpstreamOptions,
  type UpstreamRequest
} from '#src/web/proxy/upstream.js'
import { selfSignedCertificate } from '../helpers/certificate.js'
import { eventually } from '../helpers/eventually.js'
import { listen } from '../helpers/ports.js'
import { startFixedUpstream, startRawUpstream } from '../helpers/upstream.js'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

function request(origin: string, more: Partial<UpstreamRequest> = {}): UpstreamRequest {
  return { origin, target: '/x', method: 'GET', headers: [], body: undefined, silenceMs: 10_000, ...more }
}

const limits = { connectTimeoutMs: 5000 }

function start(t: ExecutionContext, options: Partial<UpstreamOptions> = {}) {
  const upstreams = createUpstreams({ ...limits, ...options })
  t.teardown(() => upstreams.close())
  /** Returns the status and the text of the response, or the kind of failure. */
  return (sent: UpstreamRequest) =>
    new Promise<string>(resolve => {
      let text = ''
      upstreams.send(sent, {
        responded: statusCode => {
          if (statusCode < 200) t.fail(`the status ${statusCode} is not that of a response`)
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

const interim = [
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 102 Processing\r\nX: y\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'
]
test('interim responses are skipped, wherever their bytes are split, and the connection is used again', async t => {
  const all = `${interim.join('')}${interim[0]}${ok}`
  let pieces: readonly string[] = []
  const upstream = await startRawUpstream(t, async (socket, text) => {
    if (!text.endsWith('\r\n\r\n')) return
    socket.setNoDelay(true)
    for (const piece of pieces) await new Promise<void>(sent => void socket.write(piece, () => setImmediate(sent)))
  })
  const ask = start(t)
  const splits = [
    [all],
    [...all],
    ...[5, 12, 13, 24, 25, 30].map(at => [all.slice(0, at), all.slice(at)]),
    [...interim, ok]
  ]
  for (pieces of splits) t.is(await ask(request(upstream.origin)), '200 ok', JSON.stringify(pieces))
  // A connection can be used again one turn of the event loop after its response.
  t.true(upstream.sockets.length <= 2)
})

test('interim responses are skipped before, during and after an upload', async t => {
  for (const when of ['before', 'during', 'after'] as const) {
    const upstream = await startRawUpstream(t, (socket, text) => {
      const [, sent = ''] = text.split('\r\n\r\n')
      if ({ before: sent === '', during: sent.length > 0 && sent.length < 10, after: sent.length === 10 }[when])
        socket.write(interim.join(''))
      if (sent.length === 10) socket.write(ok)
    })
    const stream = new PassThrough()
    const body = { stream, length: 10, isWaitingForClient: () => true }
    const response = start(t)(request(upstream.origin, { method: 'POST', body }))
    for (const part of ['01234', '56789']) {
      stream.write(part)
      await eventually(() => upstream.received.some(text => text().endsWith(part)))
    }
    stream.end()
    t.is(await response, '200 ok', when)
  }
})

test('content that looks like an interim response is not changed', async t => {
  const content = `${interim[0]}${interim[1]}`
  const upstream = await startRawUpstream(t, async socket => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${content.length}\r\n\r\n`, () =>
      setImmediate(() => socket.write(content))
    )
  })
  t.is(await start(t)(request(upstream.origin)), `200 ${content}`)
})

test('the content of a response never becomes a response, wherever the lines of an interim response end', async t => {
  const evil = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'
  for (const end of ['\n\n', '\n\r\n', '\r\n\n', '\r\n\r\n']) {
    const bytes = `HTTP/1.1 103 Early Hints\nA: b${end}HTTP/1.1 200 OK\r\nContent-Length: ${evil.length}\r\n\r\n${evil}`
    const upstream = await startFixedUpstream(t, bytes)
    t.is(await start(t)(request(upstream.origin)), `200 ${evil}`, JSON.stringify(end))
  }
})

test('an interim response that never ends fails, as does one without a response', async t => {
  const endless = await startFixedUpstream(t, `HTTP/1.1 100 Continue\r\nX: ${'x'.repeat(20_000)}`)
  t.is(await start(t)(request(endless.origin)), 'invalid_response')
  const alone = await startFixedUpstream(t, interim.join(''), { close: true })
  t.is(await start(t)(request(alone.origin)), 'invalid_response')
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
