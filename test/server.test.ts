// Starting to listen, and a shutdown that finishes the requests in progress.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { serve } from '#src/server/serve.js'
import { createClock } from './helpers/clock.js'
import { testConfig } from './helpers/config.js'
import { eventually } from './helpers/eventually.js'
import { createHostileIdp, faults } from './helpers/hostile-idp/index.js'
import { collectLogs } from './helpers/logs.js'
import { freePort, isAnswering, listen } from './helpers/ports.js'
import { sendRaw } from './helpers/raw.js'
import {
  openCallback,
  signIn,
  startLogin,
  startTestServer,
  type TestServer,
  type TestServerOptions
} from './helpers/server.js'
import { tempFolder } from './helpers/temp-folder.js'
import { createSharedStore, storesOf } from './sessions/setup.js'
import { startSignedIn } from './web/support.js'

const healthz = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'

async function startWithExpiredSession(t: ExecutionContext, options: TestServerOptions = {}) {
  const started = await startSignedIn(t, options)
  started.clock.advanceSeconds(3600)
  return started
}

/** Returns the milliseconds until `work` is done. */
async function time(work: Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work
  return performance.now() - started
}

// The transfer of 20 MB must not compete with other tests of this process.
test.serial(
  'shutdown sends a response in progress completely, then responds to the pipelined request behind it, and closes the connection',
  async t => {
    const size = 20_000_000
    const wwwroot = await tempFolder(t, { 'large.bin': Buffer.alloc(size, 'A') })
    const { server, browser, idp } = await startWithExpiredSession(t, { settings: { wwwroot } })
    const hold = idp.hold('token')
    const client = connect({ port: server.port, host: '127.0.0.1' })
    const cookie = browser.cookies.header(new URL(String(browser.origin)))
    const profile = `GET /api/auth/profile HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookie}\r\n\r\n`
    client.write(`GET /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n${profile}`)
    await once(client, 'readable')
    const closed = time(server.close())
    const all = client.toArray()
    await hold.arrived()
    hold.release()
    const received = Buffer.concat(await all).toString('latin1')
    const second = received.lastIndexOf('HTTP/1.1')
    t.is(second - received.indexOf('\r\n\r\n') - 4, size)
    t.regex(received.slice(second), /^HTTP\/1\.1 200 OK\r\n[\s\S]*\{"name":"Ada Lovelace"\}$/)
    t.true((await closed) < 5000)
  }
)

test('shutdown does not wait for idle connections', async t => {
  const { server } = await startTestServer(t)
  const client = connect({ port: server.port, host: '127.0.0.1' })
  client.write(healthz)
  await once(client, 'data')
  const silent = connect({ port: server.port, host: '127.0.0.1' })
  await once(silent, 'connect')
  // Connections are accepted in order, so after a response on a later connection the silent one has been accepted.
  await sendRaw(server.port, healthz, { answers: 1 })
  for (const socket of [client, silent]) socket.on('error', () => {}).resume()
  const ends = [client, silent].map(socket => new Promise(resolve => socket.on('close', resolve)))
  t.true((await time(server.close())) < 5000)
  await Promise.all(ends)
  t.pass()
})

for (const [what, isAborted, endpoint] of [
  ['has disconnected', true, 'token'],
  ['is cut off at the end of the grace period', false, 'userinfo']
] as const) {
  test(`shutdown stores a refreshed session for a browser that ${what}, so that other replicas can use it, and then closes the store`, async t => {
    const clock = createClock()
    const shared = createSharedStore(clock)
    // A replica's connection to the shared store. It is slow and is closed with the replica.
    let isClosed = false
    const { sessions } = shared.connect(cells => ({
      ...cells,
      async swap(...parameters) {
        await pause(20)
        if (isClosed) throw new Error('closed')
        return cells.swap(...parameters)
      }
    }))
    const close = async () => {
      isClosed = true
    }
    const { server, idp, browser, logs } = await startWithExpiredSession(t, {
      clock,
      parts: { stores: storesOf(sessions, { close }) },
      settings: { shutdown: { grace: isAborted ? 10 : 1 } }
    })
    const hold = idp.hold(endpoint)
    const page = new AbortController()
    const asked = browser.fetch('/api/auth/profile', { signal: page.signal })
    await hold.arrived()
    if (isAborted) {
      page.abort()
      await eventually(() => logs.find(({ event, aborted }) => event === 'request' && aborted === true) !== undefined)
    }
    const closed = server.close()
    await t.throwsAsync(asked)
    if (isAborted) hold.release()
    await closed
    t.true(isClosed)

    clock.advanceSeconds(600)
    const second = await startTestServer(t, { clock, idp, parts: { stores: storesOf(shared.connect().sessions) } })
    idp.heal()
    second.connect(browser)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.deepEqual(idp.reuses, [])
    t.is(idp.tokenRequests.length, 2)
  })
}

// Shutdown waits for revocations in progress.
const revocations: Record<string, (started: TestServer) => Promise<number>> = {
  async 'a logout'({ browser }) {
    await signIn(browser)
    return (await browser.navigate('/api/auth/logout')).statusCode
  },
  async 'a refused login'({ browser, idp }) {
    const callbackUrl = await startLogin(browser)
    idp.fail('token', faults.none, faults.change({ scope: 'data:read viewables:read' }))
    return (await openCallback(browser, callbackUrl)).statusCode
  }
}

for (const [what, begin] of Object.entries(revocations)) {
  test(`shutdown finishes the revocation after ${what} and logs its result`, async t => {
    const started = await startTestServer(t, { mode: 'dual', settings: { port: await freePort() } })
    const { server, idp, logs } = started
    const hold = idp.hold('revoke')
    t.is(await begin(started), what === 'a logout' ? 302 : 502)
    await hold.arrived()
    let hasEnded = false
    const closed = server.close().then(() => {
      hasEnded = true
    })
    await eventually(async () => !(await isAnswering(`${server.url}/healthz`)))
    t.false(hasEnded)
    hold.release()
    t.true((await time(closed)) < 5000)
    t.deepEqual(idp.revoked, [idp.issued.refreshTokens.at(-1)?.value])
    t.is(logs.first('revocation_failed'), undefined)
    t.is(logs.first('refresh_token_revoked') !== undefined, what === 'a logout')
  })
}

// Serial, because the revocation would end by itself after two seconds.
test.serial(
  'at the end of the grace period, an incomplete request is cut off, and a revocation is given up',
  async t => {
    const { server, browser, idp } = await startSignedIn(t, { settings: { shutdown: { grace: 0.2 } } })
    const hold = idp.hold('revoke')
    await browser.navigate('/api/auth/logout')
    await hold.arrived()
    const client = connect({ port: server.port, host: '127.0.0.1' }).on('error', () => {})
    client.write('GET /healthz HTTP/1.1\r\nX-Header: a')
    await sendRaw(server.port, healthz, { answers: 1 })
    const ended = new Promise(resolve => client.on('close', resolve))
    t.true((await time(server.close())) < 1500)
    await ended
  }
)

test('during the shutdown delay /readyz responds with 503, and all other requests are served as before', async t => {
  const clock = createClock()
  const { server, browser, idp, newBrowser } = await startWithExpiredSession(t, {
    clock,
    parts: { clock },
    settings: { port: await freePort(), shutdown: { delay: 15 } }
  })
  t.is((await browser.get('/readyz')).statusCode, 200)
  const closed = server.close()
  // A load balancer opens a new connection for each health check.
  const ready = await newBrowser().get('/readyz')
  t.is(ready.statusCode, 503)
  t.deepEqual(ready.json(), { status: 'draining', redis: 'off' })
  t.is(ready.headers.connection, 'close')
  t.is((await newBrowser().request('HEAD', '/readyz')).statusCode, 503)
  t.is((await browser.get('/healthz')).statusCode, 200)
  t.is((await browser.get('/')).statusCode, 200)
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  t.is(idp.tokenRequests.length, 2)
  clock.advanceSeconds(15)
  await closed
  await t.throwsAsync(newBrowser().get('/readyz'))
})

test("if a program's extension() fails, wwwroot is missing or the port is taken, serve() rejects and closes the store", async t => {
  const idp = await createHostileIdp(t)
  const { log } = await collectLogs()
  let closes = 0
  const close = async () => {
    closes += 1
  }
  const stores = storesOf(createSharedStore(createClock()).connect().sessions, { close })
  const fail = () => {
    throw new Error('no such table')
  }
  const failLater = async () => {
    await null
    fail()
  }
  for (const extension of [fail, failLater]) {
    await t.throwsAsync(serve(testConfig(idp), { log, stores, extension }), { message: 'no such table' })
  }
  const config = { ...testConfig(idp), wwwroot: join(tmpdir(), 'taken-away') }
  await t.throwsAsync(serve(config, { log, stores }), { code: 'ENOENT' })
  const port = await listen(t, createServer())
  await t.throwsAsync(serve(testConfig(idp, { port }), { log, stores }), { code: 'EADDRINUSE' })
  t.is(closes, 4)
})

test('a second close() waits for the same shutdown', async t => {
  const { server } = await startTestServer(t, { settings: { port: await freePort() } })
  t.is(server.close(), server.close())
  await server.close()
  await t.throwsAsync(sendRaw(server.port, healthz), { code: 'ECONNREFUSED' })
})

test('the server starts, serves files and is ready while the provider is offline', async t => {
  const idp = await createHostileIdp(t)
  await idp.offline()
  const { browser } = await startTestServer(t, { idp, settings: { platform: { issuer: idp.issuer } } })
  t.is((await browser.get('/')).statusCode, 200)
  t.is((await browser.get('/readyz')).statusCode, 200)
  t.is(idp.requests.length, 0)
})
