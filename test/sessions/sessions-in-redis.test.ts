// Whole servers with `session.store: redis`: the sessions are in Redis, and the cookie has only the id and the key of its
// session.
import type { ExecutionContext } from 'ava'
import type Koa from 'koa'
import type { Context } from 'koa'
import { createKeyring } from '#src/cookie/keyring.js'
import { createSessionCookie } from '#src/cookie/session-cookie.js'
import type { SessionReference } from '#src/cookie/session-record.js'
import { requireTokens } from '#src/web/routes/custom-routes.js'
import type { Browser } from '../helpers/browser.js'
import { eventually } from '../helpers/eventually.js'
import { askAbout } from '../helpers/gateway.js'
import { modes } from '../helpers/modes.js'
import { testWithRedis as test } from '../helpers/redis.js'
import { IMPATIENT } from '../helpers/redis-clock.js'
import { openCallback, signIn, startLogin, type TestServer } from '../helpers/server.js'
import { allRevoked, copyAt, mayComeBack, profileStatus, startServers } from './deployment.js'

const PROFILE = '/api/auth/profile'
const HTTPS_CALLBACK = 'https://app.example/api/auth/callback'
const LARGE = 100_000
const TOO_LARGE = 270_000

interface SetUp extends Omit<NonNullable<Parameters<typeof startServers>[1]>, 'parts'> {
  /** Handles requests to custom routes, which need tokens. */
  readonly handler?: (ctx: Context) => void
}

function setUp(t: ExecutionContext, { settings, handler, ...options }: SetUp = {}) {
  const inRedis = { ...settings, session: { store: 'redis', ...settings?.session } } as const
  const parts = handler && { extension: (app: Koa) => void app.use(requireTokens).use(handler) }
  return startServers(t, { ...options, settings: inRedis, ...(parts && { parts }) })
}

/** Returns the number of bytes of the `Cookie` header that the browser sends. */
function cookieBytes({ cookies }: Browser): number {
  const pairs = cookies.all().map(({ name, value }) => `${name}=${value}`)
  return Buffer.byteLength(`Cookie: ${pairs.join('; ')}\r\n`)
}

/** Decrypts the session cookie of a browser with the secret of the server. */
function referenceIn(browser: Browser, { config }: Pick<TestServer, 'config'>): SessionReference {
  const sealer = createKeyring([config.session.secret]).sealer(`session cookie, ${config.mode} mode`)
  const cookie = browser.cookies.all().find(({ name }) => /platform_session$/.test(name))
  const ages = { inactivityTimeoutSeconds: 1, maxLifetimeSeconds: undefined, now: () => 0 }
  const { open } = createSessionCookie({ sealer, name: cookie?.name ?? '', ...ages })
  return open(`${cookie?.name}=${cookie?.value}`) as SessionReference
}

for (const mode of modes) {
  test(`${mode}: tokens of 100 kB work, and the Cookie header stays below 300 bytes`, async t => {
    const settings = { platform: { callbackUrl: HTTPS_CALLBACK } }
    const { idp, clock, servers, redis } = await setUp(t, {
      mode,
      settings,
      handler(ctx) {
        ctx.body = ctx.state.tokens.internal.access_token
      }
    })
    const [one, two] = servers
    const { browser } = one
    idp.settings.accessTokenLength = LARGE
    await signIn(browser)
    t.true(cookieBytes(browser) < 300, `${cookieBytes(browser)} bytes`)
    const use = async () => {
      const response = await browser.fetch('/internal-token')
      t.is(response.body.length, LARGE)
      if (mode === 'dual')
        t.is((await browser.fetch('/api/auth/token')).json<{ access_token: string }>().access_token.length, LARGE)
      return response
    }
    t.deepEqual((await use()).setCookies, [])
    const before = referenceIn(browser, one)
    clock.advanceSeconds(3600)
    two.connect(browser)
    t.is((await use()).setCookies.length, 1, 'after a refresh the cookie gets a new lifetime')
    t.true(cookieBytes(browser) < 300, `${cookieBytes(browser)} bytes`)
    t.deepEqual(referenceIn(browser, one), { ...before, rev: before.rev + (mode === 'dual' ? 2 : 1) })
    one.connect(browser)
    t.deepEqual((await use()).setCookies, [])
    t.deepEqual(idp.reuses, [])

    const [name = ''] = await redis.admin.keys('*:session:*')
    t.true((await redis.admin.pttl(name)) > 2 * 86_400_000 - 60_000, 'it does not expire before the session')
  })
}

test('while Redis is unavailable, a request with a session gets 503 with Retry-After, and nobody is signed out', async t => {
  const settings = { forwardAuth: { address: '127.0.0.1:0' } }
  const { servers, redis, clock } = await setUp(t, { settings, redis: { timing: IMPATIENT } })
  const [{ browser, server }] = servers
  await signIn(browser)
  // A process remembers the sessions of the last minute.
  clock.advanceSeconds(61)
  redis.pause()
  for (let n = 0; n < 2; n++) {
    const response = await browser.fetch(PROFILE)
    mayComeBack(t, response)
    t.is(response.headers['retry-after'], '1')
  }
  t.is((await askAbout(server.forwardAuthPort as number, browser)).status, 503)
  redis.resume()
  await eventually(async () => (await profileStatus(browser)) === 200)
  t.is((await askAbout(server.forwardAuthPort as number, browser)).status, 200)
  redis.pause()
  t.is((await browser.navigate('/api/auth/logout')).statusCode, 302, 'a logout always works')
  redis.resume()
})

test('if Redis loses its data, users are signed out and can sign in again', async t => {
  const { servers, redis, clock } = await setUp(t)
  const [{ browser }] = servers
  await signIn(browser)
  // A process remembers the sessions of the last minute for a failover.
  clock.advanceSeconds(120)
  await redis.admin.flushall()
  // Another process may store the session again.
  mayComeBack(t, await browser.fetch(PROFILE))
  clock.advanceSeconds(30)
  const response = await browser.fetch(PROFILE)
  t.is(response.statusCode, 401)
  t.deepEqual(response.setCookies, [], 'the cookie stays, because the data may come back')
  await signIn(browser)
  t.is(await profileStatus(browser), 200)
})

test('if Redis loses its data, a session of the last minute is stored again by the process that has it', async t => {
  const { servers, redis, idp, clock } = await setUp(t)
  const [{ browser }, two] = servers
  await signIn(browser)
  const other = copyAt(two, browser)
  await redis.admin.flushall()
  t.is(await profileStatus(other), 200)
  clock.advanceSeconds(3600)
  t.is(await profileStatus(other), 200)
  t.deepEqual(idp.reuses, [])
})

test('a session that is too large is refused at the login with its sizes in the log', async t => {
  const { servers, idp } = await setUp(t)
  const [{ browser, logs }] = servers
  idp.settings.accessTokenLength = TOO_LARGE
  const callback = await openCallback(browser, await startLogin(browser))
  t.is(callback.statusCode, 500)
  const line = logs.find(({ event, error_code }) => event === 'request_failed' && error_code === 'session_too_large')
  t.like(line?.err, { sizes: { token: TOO_LARGE } })
  await allRevoked(idp)
})

test('if a refresh makes the session too large, the login and its newest refresh token are kept', async t => {
  const { servers, idp, clock } = await setUp(t)
  const [{ browser, logs }] = servers
  await signIn(browser)
  idp.settings.accessTokenLength = TOO_LARGE
  clock.advanceSeconds(3600)
  // The response has a new cookie, because the session has the newest refresh token.
  const refused = await browser.fetch(PROFILE)
  t.is(refused.statusCode, 503)
  t.truthy(refused.headers['retry-after'])
  t.regex(JSON.stringify(logs.first('refresh_failed')), /\d+ bytes long, but the limit is 262144/)
  idp.settings.accessTokenLength = 1000
  clock.advanceSeconds(2)
  await eventually(async () => (await profileStatus(browser)) === 200)
  t.deepEqual(idp.reuses, [])
})

test('after a change of the setting, sessions in cookies and sessions in Redis stay valid', async t => {
  const { start, servers, clock } = await setUp(t)
  const [inRedis] = servers
  const inCookies = await start({ session: { store: 'cookie' } })
  const [early, late] = [inCookies.newBrowser(), inRedis.newBrowser()]
  await signIn(early)
  await signIn(late)
  inRedis.connect(early)
  inCookies.connect(late)
  for (let n = 0; n < 2; n++) {
    t.is(await profileStatus(early), 200)
    t.is(await profileStatus(late), 200)
    clock.advanceSeconds(3600)
  }
})

test('changes of ctx.session are in Redis, at every replica and after a refresh', async t => {
  const { servers, clock, idp } = await setUp(t, {
    handler(ctx) {
      const added = ctx.path === '/fill' ? 'x'.repeat(TOO_LARGE) : (ctx.query.item ?? [])
      ctx.session.cart = [...(ctx.session.cart ?? []), ...[added].flat()]
      ctx.body = ctx.session.cart
    }
  })
  const [one, two] = servers
  const { browser } = one
  await signIn(browser)
  const copy = browser.clone()
  const added = await browser.fetch('/cart?item=a')
  t.is(added.setCookies.length, 1)
  two.connect(copy)
  t.deepEqual((await copy.fetch('/cart?item=b')).json(), ['a', 'b'])
  clock.advanceSeconds(3600)
  t.deepEqual((await browser.fetch('/cart?item=c')).json(), ['a', 'b', 'c'])
  const unchanged = await copy.fetch('/cart')
  t.deepEqual(unchanged.json(), ['a', 'b', 'c'])
  t.true(cookieBytes(browser) < 300)
  const tooLarge = await browser.fetch('/fill')
  t.deepEqual([tooLarge.statusCode, tooLarge.json().error], [500, 'session_too_large'])
  await Promise.all(['d', 'e', 'f'].map(item => browser.fetch(`/cart?item=${item}`)))
  clock.advanceSeconds(3600)
  t.is(await profileStatus(copy), 200)
  t.deepEqual(idp.reuses, [])
})

test('if Redis stops while a handler runs, its change of ctx.session is lost, and no response asks for the request again', async t => {
  let ran = 0
  const { servers, redis } = await setUp(t, {
    redis: { timing: IMPATIENT },
    handler(ctx) {
      ran += 1
      if (ctx.path === '/order') redis.pause()
      ctx.session.orders = ran
      ctx.body = String(ran)
    }
  })
  const [{ browser, logs }] = servers
  await signIn(browser)
  const { statusCode, headers, setCookies } = await browser.fetch('/order', { method: 'POST' })
  t.is(statusCode, 503)
  t.deepEqual([headers['session-status'], headers['retry-after'], setCookies], [undefined, undefined, []])
  t.like(logs.first('request_failed'), { path: '/order', status: 503, executed: true })
  t.is(ran, 1)
  redis.resume()
  await eventually(async () => (await browser.fetch('/again')).statusCode === 200)
})
