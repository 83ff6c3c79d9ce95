import test from 'ava'
import { createBrowser } from '../helpers/browser.js'
import { signInAtDemo, signOutAtDemo } from '../helpers/sign-in.js'
import { authorizationUrl, endSessionUrl, exchangeCode, refresh, revoke, start } from './setup.js'

const startPage = 'http://localhost:8080/'

test('the sign-out page asks for confirmation, redirects to the application, and the next login asks for a name again', async t => {
  const demo = await start(t)
  const browser = createBrowser(t)
  await signInAtDemo(browser, authorizationUrl(demo), 'Ada')
  const question = await browser.navigate(endSessionUrl(demo))
  t.is(question.statusCode, 200)
  t.notRegex(question.text(), /<script/)
  t.regex(String(question.headers['content-security-policy']), /form-action 'self' http:\/\/localhost:8080;/)

  t.is(await signOutAtDemo(browser, endSessionUrl(demo, { state: 'bye' })), `${startPage}?state=bye`)
  const next = await browser.navigate(authorizationUrl(demo), { follow: true })
  t.regex(next.text(), /<label for="user">/)
})

test('a user who chooses to stay signed in is redirected to the application, and the next login asks for no name', async t => {
  const demo = await start(t)
  const browser = createBrowser(t)
  await signInAtDemo(browser, authorizationUrl(demo), 'Ada')
  const question = await browser.navigate(endSessionUrl(demo))
  const [, action = '', xsrf = ''] =
    /action="([^"]*)">\s*<input type="hidden" name="xsrf" value="([^"]*)"/.exec(question.text()) ?? []
  const { headers } = await browser.request('POST', action, { form: { xsrf } })
  t.is(headers.location, startPage)
  t.is((await browser.navigate(authorizationUrl(demo))).statusCode, 303)
})

test("a sign-out does not revoke the application's refresh tokens", async t => {
  const demo = await start(t)
  const browser = createBrowser(t)
  const callback = new URL(await signInAtDemo(browser, authorizationUrl(demo), 'Ada'))
  const { body } = await exchangeCode(demo, callback.searchParams.get('code') ?? '')
  await signOutAtDemo(browser, endSessionUrl(demo))
  t.is((await refresh(demo, body.refresh_token)).status, 200)
})

test('after the application has revoked the refresh token of a login, the demo asks this browser again', async t => {
  const demo = await start(t)
  const [browser, other] = [createBrowser(t), createBrowser(t)]
  await signInAtDemo(other, authorizationUrl(demo), 'Grace')
  const callback = new URL(await signInAtDemo(browser, authorizationUrl(demo), 'Ada'))
  const { body } = await exchangeCode(demo, callback.searchParams.get('code') ?? '')
  const refreshed = await refresh(demo, body.refresh_token)
  t.is((await revoke(demo, refreshed.body.refresh_token)).status, 200)
  t.is((await revoke(demo, refreshed.body.refresh_token)).status, 200)
  const next = await browser.navigate(authorizationUrl(demo), { follow: true })
  t.regex(next.text(), /<label for="user">/)
  t.notRegex(next.text(), /is signed in here/)
  t.is((await other.navigate(authorizationUrl(demo))).statusCode, 303, 'another browser is still signed in')
})

test('a sign-out without a session redirects immediately, but only to the registered post_logout_redirect_uri', async t => {
  const demo = await start(t)
  const signOut = (url: string, options = {}) => createBrowser(t).navigate(url, options)
  const response = await signOut(endSessionUrl(demo, { state: 'bye' }))
  t.is(response.statusCode, 303)
  t.is(response.headers.location, `${startPage}?state=bye`)
  t.is(await signOutAtDemo(createBrowser(t), endSessionUrl(demo)), startPage)

  const evil = { post_logout_redirect_uri: 'https://evil.example/' }
  const refused = await signOut(endSessionUrl(demo, evil))
  t.is(refused.statusCode, 400)
  t.is(refused.headers.location, undefined)
  // If the request identifies no client, the URL is ignored, and the last page has a link to the application.
  for (const query of ['', `?${new URLSearchParams(evil)}`]) {
    const page = await signOut(`${demo.issuer}/authentication/v2/logout${query}`, { follow: true })
    t.is(page.statusCode, 200)
    t.is(page.url.origin, demo.issuer)
    t.true(page.text().includes('You are signed out'))
    t.true(page.text().includes(`href="${startPage}"`))
  }
})

test('if the callback URL is below a path such as /viewer, the sign-out redirects to the start page below that path', async t => {
  const demo = await start(t, { callbackUrl: 'https://app.example/viewer/api/auth/callback' })
  t.is(demo.postLogoutUrl, 'https://app.example/viewer/')
  t.is(await signOutAtDemo(createBrowser(t), endSessionUrl(demo)), 'https://app.example/viewer/')
  const elsewhere = await start(t, { callbackUrl: 'https://app.example/back' })
  t.is(elsewhere.postLogoutUrl, 'https://app.example/')
})
