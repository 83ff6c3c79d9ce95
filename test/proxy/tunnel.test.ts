// Upstreams and identity providers behind the HTTP proxy of a company, and hosts with several IP addresses.
import { spawn } from 'node:child_process'
import dns from 'node:dns'
import http from 'node:http'
import https from 'node:https'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { createServer as createTlsServer } from 'node:tls'
import test, { type ExecutionContext } from 'ava'
import { connectOptions } from '#src/base/connect-options.js'
import { createAgents, openTunnel } from '#src/provider/outbound.js'
import { ProviderError } from '#src/provider/provider-error.js'
import { createTransport } from '#src/provider/transport.js'
import { createUpstreams, type UpstreamError, type UpstreamOptions } from '#src/web/proxy/upstream.js'
import { selfSignedCertificate } from '../helpers/certificate.js'
import { eventually } from '../helpers/eventually.js'
import { listen } from '../helpers/ports.js'
import { replace } from '../helpers/replace.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { startUpstream } from '../helpers/upstream.js'

/** Starts a proxy that leads every tunnel to one port of this machine, and records what it sees. */
async function startCompanyProxy(
  t: ExecutionContext,
  port: number,
  { refusal, tls }: { readonly refusal?: string; readonly tls?: https.ServerOptions } = {}
) {
  const seen: string[] = []
  /** The connections of the tunnels. */
  const tunnels: Socket[] = []
  const server = tls ? https.createServer(tls) : http.createServer()
  server.on('request', (request, response) => {
    seen.push(`${request.method} ${request.url}`)
    response.end()
  })
  server.on('connect', ({ url, headers }: http.IncomingMessage, client: Socket) => {
    seen.push(`CONNECT ${url} ${headers['proxy-authorization'] ?? ''}${headers.authorization ?? ''}`.trim())
    tunnels.push(client)
    client.on('error', () => {})
    if (refusal !== undefined) return void client.end(`HTTP/1.1 ${refusal}\r\n\r\n`)
    const target = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n')
      target.pipe(client).pipe(target)
    })
    target.on('error', () => client.destroy())
    client.on('close', () => target.destroy())
  })
  return { url: `${tls ? 'https://localhost' : 'http://127.0.0.1'}:${await listen(t, server)}`, seen, tunnels }
}

/** Returns the function with which a TLS server records the server names that it is asked for. */
const noting = (names: string[]) => (name: string, done: (error: null) => void) => {
  names.push(name)
  done(null)
}

async function startApi(t: ExecutionContext) {
  const certificate = selfSignedCertificate({ host: 'api.example' })
  const authorizations: string[] = []
  const server = createTlsServer(certificate, socket => {
    socket.on('error', () => {})
    socket.on('data', data => {
      authorizations.push(/authorization: (.*)\r/i.exec(String(data))?.[1] ?? '')
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    })
  })
  return { port: await listen(t, server), ca: certificate.cert, authorizations }
}

/** Runs a script with `ca` as a trusted certificate authority. Node reads NODE_EXTRA_CA_CERTS only when a process starts. */
async function outputOf(
  t: ExecutionContext,
  ca: string,
  script: string,
  write: (stdin: Writable) => Promise<void>
): Promise<string> {
  const NODE_EXTRA_CA_CERTS = join(await tempFolder(t, { 'ca.pem': ca }), 'ca.pem')
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], { env: { NODE_EXTRA_CA_CERTS } })
  t.teardown(() => child.kill('SIGKILL'))
  await write(child.stdin)
  child.stdin.end()
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  t.is(stderr, '')
  return stdout
}

function start(t: ExecutionContext, options: Partial<UpstreamOptions>) {
  const upstreams = createUpstreams({ connectTimeoutMs: 5000, ...options })
  t.teardown(() => upstreams.close())
  return (origin: string) =>
    new Promise<string>(resolve => {
      const headers = ['authorization', 'Bearer t']
      const request = { origin, target: '/x', method: 'GET', headers, body: undefined, silenceMs: 10_000 }
      upstreams.send(request, {
        responded: () => {},
        received: () => true,
        ended: () => resolve('ended'),
        failed: ({ reason, cause }: UpstreamError) => resolve(`${reason} ${(cause as NodeJS.ErrnoException).code}`)
      })
    })
}

test('an https upstream is reached through a tunnel, which stays open, and the proxy sees no token', async t => {
  const api = await startApi(t)
  const company = await startCompanyProxy(t, api.port)
  const ask = start(t, {
    ca: api.ca,
    proxyFor: () => company.url.replace('//', '//u:p%40ss@')
  })
  t.is(await ask('https://api.example'), 'ended')
  // A connection can be used again one turn of the event loop after its response.
  await setImmediate()
  await setImmediate()
  t.is(await ask('https://api.example'), 'ended')
  t.deepEqual(company.seen, [`CONNECT api.example:443 Basic ${Buffer.from('u:p@ss').toString('base64')}`])
  t.deepEqual(api.authorizations, ['Bearer t', 'Bearer t'])
  t.is(await ask('https://other.example:8443'), 'unreachable ERR_TLS_CERT_ALTNAME_INVALID')
  t.is(company.seen[1]?.startsWith('CONNECT other.example:8443'), true)
})

test('plain-http upstreams, and origins without a proxy, are called directly', async t => {
  const company = await startCompanyProxy(t, 1)
  const upstream = await startUpstream(t)
  t.is(await start(t, { proxyFor: () => company.url })(upstream.origin), 'ended')
  const api = await startApi(t)
  const asked: string[] = []
  const direct = start(t, { ca: api.ca, proxyFor: url => void asked.push(url) as undefined })
  t.is(await direct(`https://127.0.0.1:${api.port}`), 'unreachable ERR_TLS_CERT_ALTNAME_INVALID')
  t.deepEqual(asked, [`https://127.0.0.1:${api.port}`])
  t.deepEqual(company.seen, [])
})

for (const hasTls of [false, true]) {
  test(`two https calls to a provider share one tunnel, and only while it is in use: ${hasTls ? 'a proxy with TLS' : 'a plain proxy'}`, async t => {
    const bodies: string[] = []
    const names: string[] = []
    const certificate = selfSignedCertificate({ host: 'provider.test' })
    const provider = https.createServer(certificate, async (request, response) => {
      bodies.push(await text(request))
      response.end('{"answered":true}')
    })
    const ofProxy = selfSignedCertificate({ host: 'localhost' })
    const SNICallback = noting(names)
    const port = await listen(t, provider)
    const company = await startCompanyProxy(t, port, hasTls ? { tls: { ...ofProxy, SNICallback } } : {})
    const script = `
      import { createTransport } from ${JSON.stringify(import.meta.resolve('#src/provider/transport.js'))}
      const proxyFor = () => ${JSON.stringify(company.url.replace('//', '//user:p%40ss@'))}
      const transport = createTransport(60000, { proxyFor, idleSocketMs: 500 })
      for await (const line of process.stdin) {
        for (let call = 0; call < 2; call++) {
          const form = { a: 'b' }
          const { status, json } = await transport.call({ endpoint: 'token', url: 'https://provider.test/token', form })
          console.log(status, json.answered)
        }
      }
      transport.close()`
    const ca = `${certificate.cert}${ofProxy.cert}`
    const output = outputOf(t, ca, script, async stdin => {
      for (let tunnels = 1; tunnels <= 2; tunnels++) {
        stdin.write('two calls\n')
        await eventually(() => company.tunnels.length === tunnels && company.tunnels.every(({ closed }) => closed))
      }
    })
    t.is(await output, '200 true\n'.repeat(4))
    t.deepEqual(bodies, Array(4).fill('a=b'))
    const tunnel = `CONNECT provider.test:443 Basic ${Buffer.from('user:p@ss').toString('base64')}`
    t.deepEqual(company.seen, [tunnel, tunnel])
    t.deepEqual(names, hasTls ? ['localhost', 'localhost'] : [])
  })
}

test('an idle tunnel to an upstream is closed as soon as an idle direct connection', async t => {
  const api = await startApi(t)
  const company = await startCompanyProxy(t, api.port)
  t.is(await start(t, { ca: api.ca, proxyFor: () => company.url })('https://api.example'), 'ended')
  await eventually(() => company.tunnels.every(({ closed }) => closed))
  t.is(company.tunnels.length, 1)
})

/** Sends a token request through a proxy that opens no tunnel. Returns the error. */
async function providerError(t: ExecutionContext, proxy: string) {
  const transport = createTransport(60_000, { proxyFor: () => proxy })
  t.teardown(() => transport.close())
  const call = transport.call({ endpoint: 'token', url: 'https://provider.test/token', form: { a: 'b' } })
  return t.throwsAsync(call, { instanceOf: ProviderError })
}

test('a proxy that refuses the tunnel, or is not there, is an unreachable upstream or provider, and no request is repeated', async t => {
  const company = await startCompanyProxy(t, 1, { refusal: '407 Proxy Authentication Required' })
  for (const [proxy, code] of [
    [company.url, 'PROXY_RESPONDED_407'],
    ['http://127.0.0.1:1', 'ECONNREFUSED']
  ] as const) {
    t.is(await start(t, { proxyFor: () => proxy })('https://api.example'), `unreachable ${code}`)
    t.like(await providerError(t, proxy), { problem: 'unreachable', code })
  }
  t.deepEqual(company.seen, ['CONNECT api.example:443', 'CONNECT provider.test:443'])
})

for (const [proxy, code] of [
  ['socks5://127.0.0.1:1080', 'PROXY_NOT_HTTP'],
  ['http://us%zz:hunter2@127.0.0.1:1', 'PROXY_USER_MALFORMED'],
  ['http://user:hunter2@:x', 'PROXY_URL_MALFORMED']
] as const) {
  test(`a proxy that cannot be used is an unreachable upstream or provider, and the error has no password: ${code}`, async t => {
    t.is(await start(t, { proxyFor: () => proxy })('https://api.example'), `unreachable ${code}`)
    const error = await providerError(t, proxy)
    t.is(error?.code, code)
    t.false(error?.message.includes('hunter2'))
  })
}

test('an IP address of a proxy with TLS is not sent as a server name', async t => {
  const names: string[] = []
  const SNICallback = noting(names)
  const company = await startCompanyProxy(t, 1, {
    tls: { ...selfSignedCertificate({ host: 'localhost' }), SNICallback }
  })
  for (const host of ['localhost', '127.0.0.1']) {
    const proxy = company.url.replace('localhost', host)
    const error = await t.throwsAsync(openTunnel(proxy, 'https://api.example', 60_000))
    t.is((error as NodeJS.ErrnoException).code, 'DEPTH_ZERO_SELF_SIGNED_CERT')
  }
  t.deepEqual(names, ['localhost'])
})

for (const [limitMs, expected] of [
  [400, 250],
  [4000, 1000],
  [10_000, 2500],
  [60_000, 2500]
] as const) {
  test(`with a time limit of ${limitMs} ms, each address of a host gets ${expected} ms`, async t => {
    t.is(connectOptions(limitMs).autoSelectFamilyAttemptTimeout, expected)
    const agents = createAgents(4000, limitMs, () => undefined)
    t.teardown(() => agents.destroy())
    t.like((agents.for().https as http.Agent & { options: object }).options, {
      autoSelectFamilyAttemptTimeout: expected
    })
  })
}

test.serial('if the first address of a host does not work, the next one is used', async t => {
  const upstream = await startUpstream(t)
  const addresses = ['::1', '127.0.0.9', '127.0.0.1'].map(address => ({ address, family: address === '::1' ? 6 : 4 }))
  type Callback = (error: null, found: unknown) => void
  replace(t, dns, 'lookup', () => (_host: string, _options: unknown, callback: Callback) => callback(null, addresses))
  t.is(await start(t, {})(`http://several.example:${upstream.port}`), 'ended')
})
