// Calls to the identity provider through an HTTP proxy, as companies use them.
import { spawn } from 'node:child_process'
import http from 'node:http'
import https from 'node:https'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test, { type ExecutionContext } from 'ava'
import { ProviderError } from '#src/provider/errors.js'
import { createTransport } from '#src/provider/transport.js'
import { selfSignedCertificate } from '../helpers/certificate.js'
import { listen } from '../helpers/ports.js'
import { repository } from '../helpers/repository.js'
import { tempFolder } from '../helpers/temp-folder.js'

interface Proxy {
  readonly url: string
  /** The target `host:port` and the Proxy-Authorization header of each tunnel that was requested. */
  readonly tunnels: readonly (readonly [target: string, authorization: string | undefined])[]
  readonly otherRequests: readonly string[]
}

/**
 * Starts a proxy that connects each tunnel to `port`. If `refusal` is given, it responds to each request for a tunnel
 * with this status.
 */
async function startProxy(t: ExecutionContext, port: number, refusal?: string): Promise<Proxy> {
  const tunnels: [string, string | undefined][] = []
  const otherRequests: string[] = []
  const server = http.createServer((request, response) => {
    otherRequests.push(String(request.url))
    response.end()
  })
  server.on('connect', (request, client: Socket) => {
    tunnels.push([String(request.url), request.headers['proxy-authorization']])
    client.on('error', () => {})
    if (refusal !== undefined) return client.end(`HTTP/1.1 ${refusal}\r\n\r\n`)
    const target = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      target.pipe(client).pipe(target)
    })
    target.on('error', () => client.destroy())
    return undefined
  })
  return { url: `http://127.0.0.1:${await listen(t, server)}`, tunnels, otherRequests }
}

const selfSigned = selfSignedCertificate()

/** Makes the calls in a separate process, because Node reads NODE_EXTRA_CA_CERTS only when a process starts. */
async function callInProcess(t: ExecutionContext, address: string, proxy: string, times: number) {
  const cwd = await tempFolder(t, { 'ca.pem': selfSigned.cert })
  const script = `
    import { createTransport } from ${JSON.stringify(join(repository, 'dist/provider/transport.js'))}
    const transport = createTransport(60000, { proxyFor: () => ${JSON.stringify(proxy)} })
    for (let call = 0; call < ${times}; call++) {
      const { status, json } = await transport.call({ endpoint: 'token', url: ${JSON.stringify(address)}, form: { a: 'b' } })
      console.log(JSON.stringify({ status, json }))
    }
    transport.close()`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    cwd,
    env: { NODE_EXTRA_CA_CERTS: join(cwd, 'ca.pem') }
  })
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  t.is(stderr, '')
  return stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as unknown)
}

test('two https calls share one tunnel through the proxy, and the user name and password come from the URL of the proxy', async t => {
  const bodies: string[] = []
  const provider = https.createServer(selfSigned, async (request, response) => {
    bodies.push(await text(request))
    response.end('{"answered":true}')
  })
  const port = await listen(t, provider)
  const proxy = await startProxy(t, port)
  const address = proxy.url.replace('//', '//user:p%40ss@')
  const answers = await callInProcess(t, `https://localhost:${port}/token`, address, 2)
  t.deepEqual(answers, [
    { status: 200, json: { answered: true } },
    { status: 200, json: { answered: true } }
  ])
  t.deepEqual(bodies, ['a=b', 'a=b'])
  const login = `Basic ${Buffer.from('user:p@ss').toString('base64')}`
  t.deepEqual(proxy.tunnels, [[`localhost:${port}`, login]])
  t.deepEqual(proxy.otherRequests, [], 'the proxy gets no request except the one for the tunnel')
})

for (const refusal of ['407 Proxy Authentication Required', '403 Forbidden']) {
  test(`if the proxy responds with ${refusal}, the provider counts as unreachable and the token request is not repeated`, async t => {
    const proxy = await startProxy(t, 0, refusal)
    const transport = createTransport(60_000, { proxyFor: () => proxy.url })
    t.teardown(() => transport.close())
    const call = transport.call({ endpoint: 'token', url: 'https://provider.test/token', form: { a: 'b' } })
    const error = await t.throwsAsync(call, { instanceOf: ProviderError })
    t.is(error?.problem, 'unreachable')
    t.true(error?.message.includes(`PROXY_RESPONDED_${refusal.slice(0, 3)}`), error?.message)
    t.is(proxy.tunnels.length, 1, 'a token request is not repeated')
  })
}

test('the error for a malformed proxy URL does not contain the URL', async t => {
  const transport = createTransport(60_000, { proxyFor: () => 'http://user:hunter2@:x' })
  t.teardown(() => transport.close())
  const error = await t.throwsAsync(transport.call({ endpoint: 'userinfo', url: 'https://provider.test/' }))
  t.true(error instanceof ProviderError)
  t.false(error?.message.includes('hunter2'))
})
