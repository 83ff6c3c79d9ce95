// The command `sessions` with two running replicas that share a real Redis, with the demo as the identity provider.
import test, { type ExecutionContext } from 'ava'
import { loadConfig } from '#src/config/load.js'
import { startDemo } from '#src/demo/index.js'
import { startServer } from '#src/server/start-server.js'
import { enough } from '../config/given.js'
import { type Browser, createBrowser } from '../helpers/browser.js'
import { assertCases } from '../helpers/case-file.js'
import { publicOrigin } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { collectLogs } from '../helpers/logs.js'
import { carries } from '../helpers/messages.js'
import { freePort } from '../helpers/ports.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { openCallback } from '../helpers/server.js'
import { signInAtDemo } from '../helpers/sign-in.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { run } from './shell.js'

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

async function startReplicas(t: ExecutionContext, more: Record<string, string> = {}) {
  const redis = await startRedis(t)
  const demo = await startDemo({ callbackUrl: enough.PLATFORM_CALLBACK_URL })
  t.teardown(() => demo.close())
  const env = {
    ...enough,
    PORT: '0',
    PLATFORM_AUTH_HOST: '127.0.0.1',
    PLATFORM_CLIENT_ID: demo.clientId,
    PLATFORM_CLIENT_SECRET: demo.clientSecret,
    PLATFORM_ISSUER: demo.issuer,
    PLATFORM_SCOPES: 'openid data:read',
    PLATFORM_BACKCHANNEL_LOGOUT: 'yes',
    REDIS_URL: redis.url,
    ...more
  }
  const { config } = await loadConfig({ env, cwd: await tempFolder(t) })
  const logs = await collectLogs('info')
  const start = async () => {
    const server = await startServer(config, { log: logs.log })
    t.teardown(() => server.close())
    // On a slow machine, the connection to Redis takes longer than the server waits for it at the start.
    await eventually(async () => (await fetch(`${server.url}/readyz`)).ok)
    return server
  }
  const replicas = [await start(), await start()] as const
  const connect = (browser: Browser, replica: 0 | 1) => browser.connectTo(publicOrigin, replicas[replica].url)
  return {
    demo,
    env,
    redis,
    /** Signs in at one replica and opens the profile, as pages do. */
    async signIn(name: string, replica: 0 | 1 = 0): Promise<Browser> {
      const browser = createBrowser(t, { origin: publicOrigin })
      connect(browser, replica)
      await openCallback(browser, await signInAtDemo(browser, '/api/auth/login', name))
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
      return browser
    },
    /** Returns the status of the profile at each replica. */
    async statuses(browser: Browser): Promise<readonly number[]> {
      const statuses: number[] = []
      for (const replica of [0, 1] as const) {
        connect(browser, replica)
        statuses.push((await browser.fetch('/api/auth/profile')).statusCode)
      }
      return statuses
    },
    async json(...args: readonly string[]) {
      const { code, output, errors } = await run(t, ['sessions', ...args, '--json'], { env })
      t.is(code, 0, errors)
      return JSON.parse(output)
    }
  }
}

for (const store of ['cookie', 'redis'] as const) {
  testWithRedis(`sessions in ${store}: an ended session is refused by both replicas, and others continue`, async t => {
    const { demo, redis, signIn, statuses, json } = await startReplicas(t, { PLATFORM_AUTH_SESSION_STORE: store })
    const laptop = await signIn('Ada Lovelace')
    const phone = await signIn('Ada Lovelace', 1)
    const other = await signIn('Grace Hopper')
    for (const browser of [laptop, phone, other]) t.deepEqual(await statuses(browser), [200, 200])

    // The profile request adds the names in the background.
    const listed = () => json('--user', 'ADA.lovelace@example.com')
    await eventually(async () => (await listed()).users.length === 1)
    const { users } = await listed()
    t.is(users[0].sessions.length, 2)
    for (const { since, endsBy } of users[0].sessions) {
      t.regex(since, ISO_TIME)
      const lifetimeHours = (Date.parse(endsBy) - Date.parse(since)) / 3_600_000
      t.true(lifetimeHours >= 23.9 && lifetimeHours < 24.5, `${lifetimeHours}`)
    }
    for (const name of ['ada.lovelace', 'Ada Lovelace', users[0].sub])
      t.deepEqual((await json('--user', name)).users[0].sub, users[0].sub)

    const ended = await json('end', '--user', 'ada.lovelace@example.com')
    t.like(ended, { sub: users[0].sub, ended: 2 })
    t.deepEqual(await statuses(laptop), [401, 401])
    t.deepEqual(await statuses(other), [200, 200])
    t.is(demo.calls.revocation, ended.revoked)
    if (store === 'cookie') t.like(ended, { revoked: 2, notRevoked: 0 })
    else t.like(ended, { revoked: 0, notRevoked: 2 })
    t.deepEqual(await listed(), { users: [] })
    t.deepEqual(await json('end', '--user', 'ada.lovelace'), { ended: 0, revoked: 0, notRevoked: 0 })
    // The replicas were told, so they refuse the other session even without Redis.
    await redis.kill()
    t.deepEqual(await statuses(phone), [401, 401])
  })
}

testWithRedis('a name of several users ends no session, because a user may have taken the name of another', async t => {
  const { env, signIn, statuses, json } = await startReplicas(t)
  // The demo gives both the same user name and e-mail address.
  const [one, two] = [await signIn('Zoé'), await signIn('Zoe')]
  await eventually(async () => (await json('--user', 'zoe@example.com')).users.length === 2)
  const { output } = await run(t, ['sessions', '--user', 'zoe@example.com'], { env })
  t.is(output.match(/^[A-Z0-9]{12} .*1 session.*\n {2}.*\S+Z.* \S+Z/gm)?.length, 2)
  const refused = await run(t, ['sessions', 'end', '--user', 'zoe@example.com'], { env })
  t.is(refused.code, 2)
  const [, sub = ''] = /--sub .*: ([A-Z0-9]{12}), [A-Z0-9]{12}\.$/m.exec(refused.errors) ?? []
  carries(t, (await run(t, ['sessions', 'end', '--user', sub], { env })).output, `1 session of ${sub} 1 refresh token`)
  const left = [await statuses(one), await statuses(two)].map(([status]) => status)
  t.deepEqual(left.toSorted(), [200, 401])
})

testWithRedis('nobody can protect another user by a name, and a message contains no control characters', async t => {
  const { env, signIn, statuses, json } = await startReplicas(t)
  const victim = await signIn('Victim')
  await eventually(async () => (await json('--email', 'victim@example.com')).users.length === 1)
  const [{ sub }] = (await json('--email', 'victim@example.com')).users
  const other = await signIn(sub)
  await eventually(async () => (await json('--name', sub)).users.length === 1)
  for (const by of ['--user', '--sub'])
    t.deepEqual(
      (await json(by, sub)).users.map((user: { sub: string }) => user.sub),
      [sub]
    )
  t.not((await json('--name', sub)).users[0].sub, sub)
  t.deepEqual((await json('--email', sub)).users, [])
  t.deepEqual((await json('--sub', 'victim@example.com')).users, [])
  t.like(await json('end', '--user', sub), { sub, ended: 1 })
  t.deepEqual(await statuses(victim), [401, 401])
  t.deepEqual(await statuses(other), [200, 200])
  const { output } = await run(t, ['sessions', '--user', 'a\u001b[2Jb\u202e'], { env })
  t.regex(output, /^No session of a\?\[2Jb\? was found/)
})

testWithRedis('what cannot be revoked is counted, and the sessions end all the same', async t => {
  const { demo, signIn, statuses, json } = await startReplicas(t, { PLATFORM_REVOCATION_ENDPOINT: 'none' })
  const browser = await signIn('Ada')
  await eventually(async () => (await json('--user', 'ada')).users.length === 1)
  const reason = 'the provider has no revocation endpoint'
  t.like(await json('end', '--user', 'ada'), { ended: 1, revoked: 0, notRevoked: 1, reason })
  t.deepEqual(await statuses(browser), [401, 401])
  t.is(demo.calls.revocation, 0)
})

testWithRedis('with another secret than the server, the command says so', async t => {
  const { env, signIn } = await startReplicas(t)
  await signIn('Ada')
  const SERVER_SESSION_SECRET = 'Kq8vT2mXz9LwRk4NpY6sHd3BfGc8UaEx'
  // A name is hashed with the secret, so another secret finds nothing.
  const { output } = await run(t, ['sessions', '--user', 'ada'], { env: { ...env, SERVER_SESSION_SECRET } })
  t.regex(output, /^No session of ada was found\. .*session\.secret/)
})

const withIndex = {
  ...enough,
  PLATFORM_ISSUER: 'http://127.0.0.1:1',
  PLATFORM_SCOPES: 'openid data:read',
  PLATFORM_BACKCHANNEL_LOGOUT: 'yes'
}
const noRedis = { REDIS_URL: 'redis://127.0.0.1:1' }
const environments: Readonly<Record<string, Record<string, string>>> = {
  'with a list of sessions and without Redis': withIndex,
  'without a list of sessions': { ...enough, ...noRedis },
  'with a misspelt variable': { ...enough, ...noRedis, PLATFORM_AUTH_BACKCHANNEL_LOGOUT: 'yes' }
}

test('sessions says what is missing', async t => {
  // As with an empty variable in a script.
  t.is((await run(t, ['sessions', 'end', '--user', ' '], { env: enough })).code, 2)
  await assertCases(t, 'test/cli/sessions.txt', async (words, [where = '']) => {
    const { code, output, errors } = await run(t, words.split(' '), { env: environments[where] ?? enough })
    t.deepEqual([code, output], [2, ''])
    return errors.trimEnd().replaceAll('\n', ' ')
  })
})

test('when Redis cannot be reached, sessions fails and names the next step', async t => {
  const env = { ...withIndex, REDIS_URL: `redis://127.0.0.1:${await freePort()}` }
  const { code, errors } = await run(t, ['sessions', 'end', '--user', 'ada'], { env })
  t.is(code, 1)
  carries(t, errors, 'Not all Redis unavailable same command again platform-auth-server check.')
})
