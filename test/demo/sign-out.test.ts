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
  t.is(demo.calls.endSession, 2)
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

test('a sign-out without a session redirects to the application immediately', async t => {
  const demo = await start(t)
  const response = await createBrowser(t).navigate(endSessionUrl(demo, { state: 'bye' }))
  t.is(response.statusCode, 303)
  t.is(response.headers.location, `${startPage}?state=bye`)
  t.is(await signOutAtDemo(createBrowser(t), endSessionUrl(demo)), startPage)
})

test('a sign-out request without a post_logout_redirect_uri ends on a page with a link to the application', async t => {
  const demo = await start(t)
  const page = await createBrowser(t).navigate(`${demo.issuer}/authentication/v2/logout`, { follow: true })
  t.is(page.statusCode, 200)
  t.true(page.text().includes('You are signed out'))
  t.true(page.text().includes(`href="${startPage}"`))
})

test('an unregistered post_logout_redirect_uri is refused with a page, or ignored if the request identifies no client', async t => {
  const demo = await start(t)
  const evil = { post_logout_redirect_uri: 'https://evil.example/' }
  const refused = await createBrowser(t).navigate(endSessionUrl(demo, evil))
  t.is(refused.statusCode, 400)
  t.is(refused.headers.location, undefined)
  const unnamed = await createBrowser(t).navigate(
    `${demo.issuer}/authentication/v2/logout?${new URLSearchParams(evil)}`
  )
  t.is(unnamed.statusCode, 303)
  t.is(new URL(String(unnamed.headers.location)).origin, demo.issuer)
})

test('if the callback URL is below a path such as /viewer, the sign-out redirects to the start page below that path', async t => {
  const demo = await start(t, { callbackUrl: 'https://app.example/viewer/api/auth/callback' })
  t.is(demo.postLogoutUrl, 'https://app.example/viewer/')
  t.is(await signOutAtDemo(createBrowser(t), endSessionUrl(demo)), 'https://app.example/viewer/')
  const elsewhere = await start(t, { callbackUrl: 'https://app.example/back' })
  t.is(elsewhere.postLogoutUrl, 'https://app.example/')
})
