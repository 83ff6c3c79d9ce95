// The place of a process: an abstract Unix socket that proves the death of the process that had it before.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { createMemoryCells } from '#src/store/memory-cells.js'
import { createPlaces } from '#src/store/places.js'
import { systemClock } from '#src/support/clock.js'
import { eventually } from '../helpers/eventually.js'
import { createHostileIdp, faults } from '../helpers/hostile-idp/index.js'
import { freePort } from '../helpers/ports.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { signIn, startTestServer } from '../helpers/server.js'

const log = { warn() {} }

function createCells() {
  return createMemoryCells<number, string>({ now: Date.now, lifetimeMs: () => 300_000 })
}

function startPlaces(t: ExecutionContext, cells: ReturnType<typeof createCells>, owner: string) {
  const places = createPlaces({ cells, owner, clock: systemClock, log })
  t.teardown(() => places.close())
  return places
}

const testOnLinux = process.platform === 'linux' ? test : test.skip

testOnLinux('a process names its place while it has the socket, and the next one proves its death', async t => {
  const cells = createCells()
  const port = await freePort()
  const [first, second] = [startPlaces(t, cells, 'first'), startPlaces(t, cells, 'second')]
  t.deepEqual(first.me(), { owner: 'first' })
  first.start(port)
  await eventually(() => first.me().place !== undefined)
  const lease = { ...first.me(), until: 0 }
  second.start(port)
  await pause(100)
  t.deepEqual(second.me(), { owner: 'second' }, 'the socket belongs to the first process')
  t.false(await second.isDead(lease))
  first.close()
  await eventually(() => second.me().place !== undefined)
  await eventually(() => second.isDead(lease))
  t.false(await second.isDead({ ...second.me(), until: 0 }))
})

testOnLinux(
  'processes at different ports have different places, and a lease without a place proves nothing',
  async t => {
    const cells = createCells()
    const [one, two] = [startPlaces(t, cells, 'one'), startPlaces(t, cells, 'two')]
    one.start(await freePort())
    two.start(await freePort())
    await eventually(() => one.me().place !== undefined && two.me().place !== undefined)
    t.not(one.me().place, two.me().place)
    t.false(await two.isDead({ ...one.me(), until: 0 }))
    t.false(await two.isDead({ owner: 'somebody', until: 0 }))
  }
)

testOnLinux('a machine that was reset to a snapshot names no place, because its clock proves nothing', async t => {
  const cells = createCells()
  const places = startPlaces(t, cells, 'one')
  places.start(await freePort())
  await eventually(() => places.me().place !== undefined)
  const name = places.me().place as string
  await eventually(async () => (await cells.read(name, true)).content !== undefined)
  const options = { now: Date.now(), message: undefined, mayFail: false }
  await cells.swap(name, await cells.read(name, true), Number.MAX_SAFE_INTEGER, options)
  await places.announce()
  t.deepEqual(places.me(), { owner: 'one' })
})

testWithRedis(
  'after kill -9 and a restart at the same port, the users of the killed process are served soon',
  async t => {
    const redis = await startRedis(t)
    const callbackUrl = 'http://localhost:8080/api/auth/callback'
    const idp = await createHostileIdp(t, { now: Date.now, callbackUrl })
    idp.settings.accessTokenLifetimeSeconds = 3
    const overrides = { redisUrl: redis.url, platform: { callbackUrl } }
    const other = await startTestServer(t, {
      idp,
      overrides,
      redis: { open: undefined as never, timing: {} },
      parts: { now: Date.now }
    })
    const { browser } = other
    const port = await freePort()
    const children: ChildProcess[] = []
    const start = async () => {
      const config = JSON.stringify({ ...other.config, port })
      const child = fork(new URL('placed-server.js', import.meta.url), [config], { silent: true })
      children.push(child)
      await once(child, 'message')
      return child
    }
    t.teardown(() => {
      for (const child of children) child.kill('SIGKILL')
    })
    const owner = await start()
    await signIn(browser)
    // Nobody has a lease in the first 2 seconds after its connection, and the tokens must expire.
    await pause(3100)
    const ask = (at: number) =>
      fetch(`http://127.0.0.1:${at}/api/auth/profile`, { headers: { cookie: cookies, host: 'localhost:8080' } })
    const cookies = browser.cookies
      .all()
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ')
    const before = idp.tokenRequests.length
    idp.fail('token', faults.hang('before'))
    const asked = ask(port).catch(() => undefined)
    await eventually(() => idp.tokenRequests.length > before)
    owner.kill('SIGKILL')
    await asked
    await start()
    const restarted = performance.now()
    await eventually(async () => (await browser.fetch('/api/auth/profile')).statusCode === 200)
    const servedAfterMs = performance.now() - restarted
    t.log(`served ${Math.round(servedAfterMs)} ms after the restart`)
    t.true(servedAfterMs < 30_000, `the lease of the killed process would have lasted for 65 s: ${servedAfterMs} ms`)
    t.deepEqual(idp.reuses, [])
  }
)
