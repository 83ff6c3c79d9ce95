// The link "Sign in again" on an error page leads to a login that returns to the page where the failed login or request began.
import test from 'ava'
import type { BrowserResponse } from '../../helpers/browser.js'
import { faults } from '../../helpers/hostile-idp/index.js'
import { openCallback, startTestServer, type TestServer } from '../../helpers/server.js'
import { authorize, handledBy, httpsCallbackUrl, startSignedIn } from '../support.js'

const returnTo = '/models/7?view=top&part=a%20b'
const returning = `return_to=${encodeURIComponent(returnTo)}`

/** The URL of the link "Sign in again", or "Sign in" on the page for a user who is not signed in. */
function signInAddressOn(page: BrowserResponse): string | undefined {
  return /<a class="button" href="([^"]*)"[^>]*>Sign in( again)?</.exec(page.text())?.[1]?.replaceAll('&#38;', '&')
}

/** What happens before the callback. */
const failures: readonly (readonly [what: string, status: number, fail: (server: TestServer) => unknown])[] = [
  ['whose code the provider rejected', 400, ({ idp }) => idp.fail('token', faults.error('invalid_grant'))],
  ['with a scope that the provider rejected', 502, ({ idp }) => idp.fail('token', faults.error('invalid_scope'))],
  ['that the provider could not finish because it was down', 504, ({ idp }) => idp.offline()]
]

for (const [what, status, fail] of failures) {
  test(`after a login ${what}, the link to sign in again has the return path and the prompt of that login`, async t => {
    for (const prompt of ['prompt=login&', '']) {
      const server = await startTestServer(t)
      const login = `/api/auth/login?${prompt}${returning}`
      const back = await authorize(server.browser, login)
      await fail(server)
      const page = await openCallback(server.browser, back)
      t.is(page.statusCode, status)
      t.is(signInAddressOn(page), login)
    }
  })
}

// Without a prompt, the provider would refuse the account that is signed in there again and again.
for (const [error, configured, begun, offered] of [
  ['access_denied', undefined, undefined, 'login'],
  ['access_denied', undefined, 'select_account', 'select_account'],
  ['access_denied', 'consent', undefined, undefined],
  ['interaction_required', 'none', undefined, 'login'],
  ['temporarily_unavailable', 'none', undefined, undefined]
] as const) {
  test(`after ${error}, with the prompts ${configured} and ${begun}, the link to sign in again has the prompt ${offered} and returns to the page where the login began`, async t => {
    const authorizationParams = configured === undefined ? undefined : { prompt: configured }
    const { browser, idp } = await startTestServer(t, { settings: { platform: { authorizationParams } } })
    const prompted = (prompt: string | undefined) => `/api/auth/login?${prompt ? `prompt=${prompt}&` : ''}${returning}`
    idp.settings.login = { error }
    const denied = await openCallback(browser, await authorize(browser, prompted(begun)))
    t.is(signInAddressOn(denied), prompted(offered))
    idp.settings.login = {}
    const back = await authorize(browser, signInAddressOn(denied) ?? '')
    t.is(idp.requestsTo('authorize').at(-1)?.query.prompt, offered ?? configured)
    t.is((await openCallback(browser, back)).headers.location, returnTo)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  })
}

for (const path of ['/api/auth/profile', '/api/auth/token']) {
  test(`a user who opens ${path} in a tab without a session gets the 401 page, even if the session has just ended`, async t => {
    const { browser, clock, idp } = await startSignedIn(t, { mode: 'dual' })
    clock.advanceSeconds(3600)
    idp.fail('token', faults.error('invalid_grant'))
    for (const page of [await browser.navigate(path), await browser.navigate(path)]) {
      t.deepEqual([page.statusCode, page.headers['content-type']], [401, 'text/html; charset=utf-8'])
      t.regex(page.text(), /<h1>You are not signed in<\/h1>[\s\S]*<code>401 unauthorized<\/code>/)
      t.is(signInAddressOn(page), '/api/auth/login')
      t.is(browser.cookies.get('platform_session'), undefined)
    }
    const script = await browser.fetch(path, { headers: { accept: 'text/html' } })
    t.deepEqual([script.statusCode, script.body.length, script.headers['content-type']], [401, 0, undefined])
  })
}

test('if a page of a custom route fails, its button opens the same page again, or a login that returns to it, including the path prefix of the server', async t => {
  const { browser } = await startTestServer(t, {
    settings: { platform: { callbackUrl: httpsCallbackUrl } },
    parts: handledBy(async ctx => ctx.throw(ctx.path.startsWith('/api/') ? 401 : 500))
  })
  const base = '/tools/viewer'
  const failed = await browser.navigate(`${base}${returnTo}`)
  t.is(failed.statusCode, 500)
  t.regex(failed.text(), /<a class="button" href="">Try again</)
  t.is(signInAddressOn(failed), undefined)
  t.regex(failed.text(), /href="\/tools\/viewer\/"/, 'the link to the start page has the prefix too')
  for (const path of ['/api/hubs', '/api/f%2Fg%C3%BC/100%25']) {
    const refused = await browser.navigate(base + path)
    t.is(refused.statusCode, 401)
    t.is(signInAddressOn(refused), `${base}/api/auth/login?return_to=${encodeURIComponent(base + path)}`)
  }
})
