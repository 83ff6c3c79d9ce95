import { accessibilityProblems, browserTest as test } from '../helpers/chromium.js'
import { deployWithHostileIdp } from '../helpers/deployment.js'
import { faults } from '../helpers/hostile-idp/index.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { open, status } from './starter-page.js'

test('while only the provider is down, the profile page offers to try again', async (t, visit) => {
  const { page, url, idp } = await open(deployWithHostileIdp(t, { mode: 'dual' }), visit, {}, 'api/auth/login')
  idp.failWhen('userinfo', () => faults.html(500))
  t.is((await page.goto(`${url}api/auth/profile`))?.status(), 502)
  await page.getByRole('heading', { name: 'You are still signed in', level: 1 }).waitFor()
  idp.heal()
  await page.getByRole('link', { name: 'Try again' }).click()
  await page.getByText('{"name":"Ada Lovelace"}').waitFor()
  t.is(page.url(), `${url}api/auth/profile`)
})

test('if a provider is busy after the code exchange, the page says so and finishes the login by itself', async (t, visit) => {
  const { url, idp } = await deployWithHostileIdp(t, { mode: 'dual' })
  const { page } = await visit()
  // The code exchange succeeds. The request for the public token fails until the test has seen the page.
  idp.failWhen('token', ({ form }) => (form.grant_type === 'refresh_token' ? faults.tooManyRequests(1) : undefined))
  t.is((await page.goto(`${url}api/auth/login`))?.status(), 503)
  await page.getByRole('heading', { name: 'The service is busy', level: 1 }).waitFor()
  idp.heal()
  await status(page, 'You are signed in as Ada Lovelace.')
  t.deepEqual(idp.reuses, [])
})

// A page as many applications have it, which redirects every user without a session to the login.
const application = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Application</title><main><h1>Application</h1><p></p></main>
<script type="module">
  const answer = await fetch('/api/auth/profile')
  if (answer.status === 401) location.replace('/api/auth/login')
  else document.querySelector('p').textContent = 'welcome'
</script></html>`

test('if the session cookie is lost, the login stops at a page with the reason instead of a redirect loop', async (t, visit) => {
  const wwwroot = await tempFolder(t, { 'index.html': application })
  const { url, idp, logs } = await deployWithHostileIdp(t, { settings: { wwwroot }, loses: 'platform_session' })
  const { page } = await visit()
  const refused = page.waitForResponse(response => response.status() === 400)
  await page.goto(url)
  await page.getByRole('heading', { name: 'You signed in, but the browser did not stay signed in' }).waitFor()
  t.regex((await (await refused).headerValue('content-security-policy')) ?? '', /^default-src 'none'; /)
  t.is(idp.requestsTo('authorize').length, 1)
  t.is(logs.all('session_cookie_missing').length, 1)
  t.true(await page.getByText('The browser blocks cookies').isVisible())
  t.deepEqual(await accessibilityProblems(page), [])
})
