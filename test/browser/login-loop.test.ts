import { accessibilityProblems, browserTest as test } from '../helpers/chromium.js'
import { deployWithHostileIdp } from '../helpers/deployment.js'
import { tempFolder } from '../helpers/temp-folder.js'

// A page as many applications have it, which redirects every user without a session to the login.
const application = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Application</title><main><h1>Application</h1><p></p></main>
<script type="module">
  const answer = await fetch('/api/auth/profile')
  if (answer.status === 401) location.replace('/api/auth/login')
  else document.querySelector('p').textContent = 'welcome'
</script></html>`

const heading = 'You signed in, but the browser did not stay signed in'

test('if the session cookie is lost, the login stops at a page with the reason instead of a redirect loop', async (t, visit) => {
  const wwwroot = await tempFolder(t, { 'index.html': application })
  const { url, idp, logs } = await deployWithHostileIdp(t, { settings: { wwwroot }, loses: 'platform_session' })
  const { page } = await visit()
  const refused = page.waitForResponse(response => response.status() === 400)
  await page.goto(url)
  await page.getByRole('heading', { name: heading }).waitFor()
  t.regex((await (await refused).headerValue('content-security-policy')) ?? '', /^default-src 'none'; /)
  t.is(idp.requestsTo('authorize').length, 1)
  t.is(logs.all('session_cookie_missing').length, 1)
  t.true(await page.getByText('The browser blocks cookies').isVisible())
  t.deepEqual(await accessibilityProblems(page), [])
})

test('if the page was opened under another host than the callback URL, the error page links to the right address', async (t, visit) => {
  const wwwroot = await tempFolder(t, { 'index.html': application })
  const { url } = await deployWithHostileIdp(t, { settings: { wwwroot } })
  const { page } = await visit()
  await page.goto(url.replace('localhost', '127.0.0.1'))
  await page.getByRole('heading', { name: heading }).waitFor()
  t.true(await page.getByText('You opened 127.0.0.1').isVisible())
  await page.getByRole('link', { name: url }).first().click()
  await page.getByText('welcome').waitFor()
  t.is(page.url(), url)
})

test('on plain http the error page says that Secure cookies need https and links to the https address', async (t, visit) => {
  const wwwroot = await tempFolder(t, { 'index.html': application })
  const { url, openFront } = await deployWithHostileIdp(t, { settings: { wwwroot }, https: true, host: 'app.test' })
  const plain = await openFront({ host: 'app.test' })
  const { page } = await visit()
  await page.goto(plain.url)
  await page.getByRole('heading', { name: heading }).waitFor()
  t.regex((await page.getByRole('listitem').first().textContent()) ?? '', /plain http/)
  t.deepEqual(await accessibilityProblems(page), [])
  await page.getByRole('link', { name: url }).first().click()
  await page.getByText('welcome').waitFor()
  t.is(page.url(), url)
})
