// The host slot of a process: an abstract Unix socket that proves the death of the process that had it before.
import net from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { systemClock } from '#src/base/clock.js'
import { createHostSlots } from '#src/sessions/host-slots.js'
import { createMemoryValues } from '#src/sessions/memory-cells.js'
import { createBrowser } from '../helpers/browser.js'
import { createClock } from '../helpers/clock.js'
import { defaultCallbackUrl, publicOrigin } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { createHostileIdp, faults } from '../helpers/hostile-idp/index.js'
import { freePort } from '../helpers/ports.js'
import { environmentFor, startProgram } from '../helpers/program.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { signIn } from '../helpers/server.js'
import { tempFolder } from '../helpers/temp-folder.js'

const log = { warn() {} }

function createCells() {
  return createMemoryValues<number>(Date.now, 300_000)
}

type Options = Partial<Parameters<typeof createHostSlots>[0]>

function startHostSlots(
  t: ExecutionContext,
  cells: ReturnType<typeof createCells>,
  owner: string,
  options: Options = {}
) {
  const hostSlots = createHostSlots({ cells, owner, clock: systemClock, log, hasRedis: true, ...options })
  t.teardown(() => hostSlots.close())
  return hostSlots
}

const testOnLinux = process.platform === 'linux' ? test : test.skip

testOnLinux('a process names its host slot while it has the socket, and the next one proves its death', async t => {
  const cells = createCells()
  const port = await freePort()
  const clock = createClock()
  const [first, second] = [startHostSlots(t, cells, 'first'), startHostSlots(t, cells, 'second', { clock })]
  t.deepEqual(first.me(), { owner: 'first' })
  first.start(port)
  await eventually(() => first.me().hostSlot !== undefined)
  const lease = { ...first.me(), until: 0 }
  second.start(port)
  await eventually(() => clock.timers().length > 0)
  t.deepEqual(second.me(), { owner: 'second' }, 'the socket belongs to the first process')
  t.false(await second.isDead(lease))
  first.close()
  await eventually(() => {
    clock.advanceSeconds(1)
    return second.me().hostSlot !== undefined
  })
  await eventually(() => second.isDead(lease))
  t.false(await second.isDead({ ...second.me(), until: 0 }))
})

testOnLinux('workers that share a port without Redis warn once at the start that logins can be lost', async t => {
  const cells = createCells()
  const clock = createClock()
  const port = await freePort()
  const warningsOf = (options: Options) => {
    const warnings: unknown[] = []
    const hostSlots = startHostSlots(t, cells, 'other', {
      ...options,
      clock,
      log: { warn: (...args: unknown[]) => void warnings.push(args) }
    })
    hostSlots.start(port)
    return warnings
  }
  const first = startHostSlots(t, cells, 'first')
  first.start(port)
  await eventually(() => first.me().hostSlot !== undefined)
  const worker = warningsOf({ isWorker: true, hasRedis: false })
  const others = [warningsOf({ isWorker: true }), warningsOf({ isWorker: false, hasRedis: false })]
  const attempted = () => eventually(() => clock.timers().length === 3)
  await attempted()
  clock.advanceSeconds(1)
  await attempted()
  t.is(worker.length, 1)
  t.regex(
    JSON.stringify(worker),
    /redis\.url is not set, the two may use the same refresh token, and logins can be lost/
  )
  // In a restart, the socket belongs to the process that ends.
  t.deepEqual(others, [[], []])
})

testOnLinux('connections of other processes to the socket are closed immediately', async t => {
  const port = await freePort()
  const first = startHostSlots(t, createCells(), 'first')
  first.start(port)
  await eventually(() => first.me().hostSlot !== undefined)
  const socket = net.connect(`\0platform-auth-server-${port}`).resume()
  socket.on('error', () => {})
  await eventually(() => socket.closed)
  t.pass()
})

testOnLinux('a machine that was reset to a snapshot names no host slot, because its clock proves nothing', async t => {
  const cells = createCells()
  const hostSlots = startHostSlots(t, cells, 'one')
  hostSlots.start(await freePort())
  await eventually(() => hostSlots.me().hostSlot !== undefined)
  const name = hostSlots.me().hostSlot as string
  await eventually(async () => (await cells.read(name)) !== undefined)
  await cells.change(name, () => ({ result: undefined, cell: Number.MAX_SAFE_INTEGER }))
  await hostSlots.announce()
  t.deepEqual(hostSlots.me(), { owner: 'one' })
})

testWithRedis('after kill -9 and a restart at the same port, users of the killed process are served soon', async t => {
  const redis = await startRedis(t)
  const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl, accessTokenLifetimeSeconds: 3 })
  const cwd = await tempFolder(t)
  const start = (port: number) => {
    const env = { REDIS_URL: redis.url, PORT: String(port) }
    return startProgram(t, { cwd, env: { ...environmentFor(idp, defaultCallbackUrl), ...env } })
  }
  const port = await freePort()
  const [other, owner] = [await start(0), await start(port)]
  const browser = createBrowser(t, { origin: publicOrigin, connectTo: { [publicOrigin]: other.url } })
  await signIn(browser)
  const atOwner = browser.clone()
  atOwner.connectTo(publicOrigin, owner.url)
  // No process has a lease in the first 2 seconds after its connection, and the tokens must expire.
  await pause(3100)
  const before = idp.tokenRequests.length
  idp.fail('token', faults.hang())
  const hasSentToken = () => idp.tokenRequests.length > before
  // On a slow machine, the process may still be connecting to Redis. The request then gets 503 and is repeated.
  const asked = eventually(async () => {
    await atOwner.fetch('/api/auth/profile').catch(() => undefined)
    return hasSentToken()
  })
  await eventually(hasSentToken)
  owner.signal('SIGKILL')
  await Promise.all([asked, owner.ended])
  await start(port)
  const restarted = performance.now()
  await eventually(async () => (await browser.fetch('/api/auth/profile')).statusCode === 200)
  const servedAfterMs = performance.now() - restarted
  t.log(`served ${Math.round(servedAfterMs)} ms after the restart`)
  t.true(servedAfterMs < 30_000, `the lease of the killed process would have lasted for 65 s: ${servedAfterMs} ms`)
  t.deepEqual(idp.reuses, [])
})
