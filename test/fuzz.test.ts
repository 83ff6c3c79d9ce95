// Sends malformed and unusual requests over raw sockets to a server in a separate process.
import test from 'ava'
import { createBrowser } from './helpers/browser.js'
import { findSecrets } from './helpers/byte-recorder.js'
import { publicOrigin, testConfig } from './helpers/config.js'
import { createHostileIdp } from './helpers/hostile-idp/index.js'
import { isFault, type LogEntry } from './helpers/logs.js'
import { malformedRequest, type Seeds } from './helpers/malformed.js'
import { createRandom } from './helpers/random.js'
import { sendRaw } from './helpers/raw.js'
import { signIn, startLogin } from './helpers/server.js'
import { startServerProcess } from './helpers/server-process/index.js'
import { tempFolder } from './helpers/temp-folder.js'

const connectionsAtOnce = 40
// The first requests compile the server's code and fill its caches.
const warmUp = 1000
// The heap grows and shrinks by more than a megabyte between two collections of old objects. So the smallest of several samples is
// compared with the smallest of as many later samples. A leak of 400 bytes for each request exceeds the limit.
const round = 1000
const samplesOfHalf = 3
const growth = 1_200_000

// Dual mode also runs all the code of single mode.
test('after 7,000 malformed requests the server in dual mode still runs, has not leaked memory, and signs users in', async t => {
  const idp = await createHostileIdp(t, { callbackUrl: `${publicOrigin}/api/auth/callback` })
  const wwwroot = await tempFolder(t, { 'index.html': '<!doctype html>', 'app.js.br': 'br' })
  const config = testConfig(idp, { mode: 'dual', wwwroot, log: { level: 'info', trustForwardedFor: 1 } })
  const server = await startServerProcess(t, config)
  const newBrowser = () =>
    createBrowser(t, { origin: publicOrigin, connectTo: { [publicOrigin]: `http://127.0.0.1:${server.port}` } })
  const bystander = newBrowser()
  await signIn(bystander)
  const cookies: string[] = []
  const callbacks: string[] = []
  for (const browser of Array.from({ length: 5 }, newBrowser)) {
    await signIn(browser)
    cookies.push(browser.cookies.header(new URL(publicOrigin)) ?? '')
    callbacks.push((await startLogin(browser)).slice(publicOrigin.length))
  }
  const seeds: Seeds = { cookies, callbacks }

  // For other requests, use another seed: FUZZ_SEED=2 npx ava dist-test/fuzz.test.js
  const seed = Number(process.env.FUZZ_SEED ?? 1)
  t.log(`seed ${seed}`)
  const random = createRandom(seed)
  const statuses = new Map<number, number>()
  const bytes: Buffer[] = []

  async function sendOne() {
    // Some requests are incomplete. The client ends its side of the connection, so the server does not wait for the rest.
    const { answers, bytes: received } = await sendRaw(server.port, malformedRequest(random, seeds), {
      timeoutMs: 60_000,
      end: true
    })
    const statusCode = answers.at(-1)?.statusCode ?? 0
    statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1)
    bytes.push(received)
  }
  async function send(count: number) {
    let left = count
    const connection = async () => {
      while (left-- > 0 && server.exit() === undefined) await sendOne()
    }
    await Promise.all(Array.from({ length: connectionsAtOnce }, connection))
  }

  await send(warmUp)
  const smallestHeap = async () => {
    const samples: number[] = []
    while (samples.length < samplesOfHalf) {
      await send(round)
      samples.push(await server.heapUsed())
    }
    return Math.min(...samples)
  }
  const before = await smallestHeap()
  const after = await smallestHeap()
  t.log(`heap ${Math.round(before / 1000)} kB, then ${Math.round(after / 1000)} kB`)
  t.true(after - before < growth, `from ${before} to ${after} bytes`)

  t.is(server.exit(), undefined, 'the process still runs')
  t.is(server.errorOutput(), '')
  t.log(Object.fromEntries([...statuses].sort(([a], [b]) => a - b)))
  const faults = [...statuses.keys()].filter(status => status >= 500)
  t.deepEqual(faults, [])
  for (const status of [200, 302, 400, 401, 403, 404, 405, 413]) t.true(statuses.has(status), String(status))

  const entries = server.lines.map(line => JSON.parse(line) as LogEntry)
  const errors = entries.filter(isFault)
  t.deepEqual(errors, [])
  const publicScope = config.platform.publicTokenScopes.join(' ')
  t.deepEqual(findSecrets(bytes, [...idp.secrets({ except: publicScope }), config.session.secret]), [])
  t.is((await bystander.fetch('/api/auth/profile')).statusCode, 200)
  const newcomer = newBrowser()
  await signIn(newcomer)
  t.is((await newcomer.fetch('/api/auth/profile')).statusCode, 200)
})
