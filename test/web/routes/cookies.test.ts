import test, { type ExecutionContext } from 'ava'
import type { BrowserResponse } from '../../helpers/browser.js'
import { publicOrigin } from '../../helpers/config.js'
import { openCallback, startTestServer, type TestServer, type TestServerOptions } from '../../helpers/server.js'
import { authorize, guarded, httpsCallbackUrl, sessionCookies } from '../support.js'

/** Two deployments that need different cookies: one on this machine, and one behind a proxy that terminates TLS. */
const deployments = {
  'plain http on this machine': {
    callbackUrl: `${publicOrigin}/api/auth/callback`,
    prefix: '',
    attributes: { path: '/', httponly: '', samesite: 'Lax' }
  },
  'https with a path prefix': {
    callbackUrl: httpsCallbackUrl,
    prefix: '__Host-',
    attributes: { path: '/', httponly: '', samesite: 'Lax', secure: '' }
  }
} as const

interface Visit extends TestServer {
  /** Opens a path below the path prefix of the deployment. */
  open(path: string): Promise<BrowserResponse>
  login(): Promise<BrowserResponse>
}

async function startVisit(t: ExecutionContext, callbackUrl: string, options: TestServerOptions = {}): Promise<Visit> {
  const settings = { ...options.settings, platform: { ...options.settings?.platform, callbackUrl } }
  const server = await startTestServer(t, { ...options, settings })
  const { browser } = server
  const base = new URL(callbackUrl).pathname.replace('/api/auth/callback', '')
  const open = (path: string) => browser.navigate(base + path)
  const login = async () => openCallback(browser, await authorize(browser, `${base}/api/auth/login`))
  return { ...server, open, login }
}

/** The names of the stored cookies. Like a browser, the jar rejects a cookie that does not meet the conditions of its prefix. */
function stored({ browser }: Visit): string[] {
  return browser.cookies.all().map(({ name }) => name)
}

function setBy({ setCookies }: BrowserResponse) {
  return setCookies.map(({ name, attributes }) => ({ name, attributes }))
}

for (const [what, { callbackUrl, prefix, attributes }] of Object.entries(deployments)) {
  test(`cookies of a deployment on ${what} have the right names and attributes, also when they are refreshed and deleted`, async t => {
    const visit = await startVisit(t, callbackUrl, { mode: 'dual' })
    visit.idp.settings.accessTokenLength = 3000
    const login = await visit.open('/api/auth/login')
    const ofLogin = [{ name: `${prefix}platform_session_login`, attributes: { ...attributes, 'max-age': '600' } }]
    const ofSession = ['', '.1'].map(chunk => ({
      name: `${prefix}platform_session${chunk}`,
      attributes: { ...attributes, 'max-age': '86400' }
    }))
    t.deepEqual(setBy(login), ofLogin)
    t.deepEqual(setBy(await visit.login()), [...ofSession, ...ofLogin])
    t.is(stored(visit).length, 3)
    t.is((await visit.open(guarded)).statusCode, 200)

    visit.clock.advanceSeconds(3600)
    t.deepEqual(setBy(await visit.open(guarded)), ofSession)
    const logout = await visit.open('/api/auth/logout')
    for (const { name, value, attributes: given } of logout.setCookies) {
      t.is(value, '', name)
      const { 'max-age': maxAge, expires, samesite, ...rest } = given
      t.deepEqual({ ...rest, samesite: samesite?.replace('lax', 'Lax') }, attributes, name)
      t.true(maxAge === '0' || Date.parse(expires ?? '') === 0, name)
    }
    const deleted = logout.setCookies.map(({ name }) => name)
    t.is(new Set(deleted).size, deleted.length, 'each cookie is deleted once')
    t.deepEqual(stored(visit), [])

    await visit.login()
    visit.idp.endAllGrants()
    visit.clock.advanceSeconds(3600)
    t.is((await visit.open(guarded)).statusCode, 401)
    t.deepEqual(sessionCookies(visit.browser), [], 'the provider has ended the session')
  })
}

for (const cookieName of ['sid', 'Http-sid', 'a.b_c-1']) {
  test(`with the cookie name ${cookieName}, cookies have no prefix on http and the prefix __Host- on https`, async t => {
    for (const { callbackUrl, prefix } of Object.values(deployments)) {
      const visit = await startVisit(t, callbackUrl, { settings: { session: { cookieName } } })
      t.is((await visit.login()).statusCode, 302)
      t.deepEqual(stored(visit).sort(), [`${prefix}${cookieName}`, `${prefix}${cookieName}_login`])
      t.is((await visit.open(guarded)).statusCode, 200)
    }
  })
}

test('over https a session cookie without the prefix is ignored, because a neighbouring host could have set it', async t => {
  const visit = await startVisit(t, httpsCallbackUrl)
  await visit.login()
  const [[, value] = ['', '']] = sessionCookies(visit.browser)
  const path = `${new URL(httpsCallbackUrl).pathname.replace('/api/auth/callback', '')}${guarded}`
  const ask = async (cookie: string) => (await visit.newBrowser().get(path, { headers: { cookie } })).statusCode
  t.is(await ask(`__Host-platform_session=${value}`), 200)
  t.is(await ask(`platform_session=${value}`), 401)
})
