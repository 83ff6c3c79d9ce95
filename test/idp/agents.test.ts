// Calls to the provider through a company's proxy.
import { spawn } from 'node:child_process'
import http from 'node:http'
import https from 'node:https'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test, { type ExecutionContext } from 'ava'
import { UpstreamError } from '#src/idp/errors.js'
import { createTransport } from '#src/idp/transport.js'
import { selfSignedCertificate } from '../helpers/certificate.js'
import { listen } from '../helpers/ports.js'
import { repository } from '../helpers/repository.js'
import { tempFolder } from '../helpers/temp-folder.js'

interface Proxy {
  readonly url: string
  /** `host:port` of every tunnel that was asked for, with the login that came along. */
  readonly tunnels: readonly (readonly [target: string, authorization: string | undefined])[]
  readonly otherRequests: readonly string[]
}

/** A proxy that connects every tunnel to `port`, or answers with `refusal`. */
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

/** Calls in a process of its own, because Node reads NODE_EXTRA_CA_CERTS when a process starts. */
async function callInProcess(t: ExecutionContext, address: string, proxy: string, times: number) {
  const cwd = await tempFolder(t, { 'ca.pem': selfSigned.cert })
  const script = `
    import { createTransport } from ${JSON.stringify(join(repository, 'dist/idp/transport.js'))}
    const transport = createTransport(60000, undefined, undefined, () => ${JSON.stringify(proxy)})
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

test('an https call goes through one tunnel of the proxy, which is kept for the next, with the login in its address', async t => {
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
  t.deepEqual(proxy.otherRequests, [], 'the proxy sees nothing of the call')
})

for (const [refusal, code] of [
  ['407 Proxy Authentication Required', 'PROXY_ANSWERED_407'],
  ['403 Forbidden', 'PROXY_ANSWERED_403']
] as const) {
  test(`the refusal of a proxy is no answer of the provider: ${refusal}`, async t => {
    const proxy = await startProxy(t, 0, refusal)
    const transport = createTransport(60_000, undefined, undefined, () => proxy.url)
    t.teardown(() => transport.close())
    const call = transport.call({ endpoint: 'token', url: 'https://provider.test/token', form: { a: 'b' } })
    const error = await t.throwsAsync(call, { instanceOf: UpstreamError })
    t.is(error?.problem, 'unreachable')
    t.true(error?.message.includes(code), error?.message)
    t.is(proxy.tunnels.length, 1, 'a token request is not repeated')
  })
}

test('the error for a malformed proxy address does not contain the address', async t => {
  const transport = createTransport(60_000, undefined, undefined, () => 'http://user:hunter2@:x')
  t.teardown(() => transport.close())
  const error = await t.throwsAsync(transport.call({ endpoint: 'userinfo', url: 'https://provider.test/' }))
  t.true(error instanceof UpstreamError)
  t.false(error?.message.includes('hunter2'))
})
