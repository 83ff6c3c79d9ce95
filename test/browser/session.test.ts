import { accessibilityProblems, serialBrowserTest as serialTest, browserTest as test } from '../helpers/chromium.js'
import { deployWithDemo, deployWithHostileIdp } from '../helpers/deployment.js'
import { faults } from '../helpers/hostile-idp/index.js'
import { open, openSignedIn, signInAs, status } from './starter-page.js'

const signedIn = 'You are signed in as Ada Lovelace.'

serialTest('after a sign-out in one tab, the other tab shows it at the next action', async (t, visit) => {
  const permissions = ['clipboard-read', 'clipboard-write']
  const visitor = await openSignedIn(deployWithHostileIdp(t, { mode: 'dual' }), visit, { permissions })
  const { page: first, newTab, url } = visitor
  await first.evaluate(`navigator.clipboard.writeText('before')`)
  const second = await newTab()
  await second.goto(url)
  await second.getByRole('link', { name: 'Sign out' }).click()
  await status(second, 'You are not signed in.')

  await first.getByRole('button', { name: 'Copy token' }).click()
  await status(first, 'You are no longer signed in.')
  t.is(await first.evaluate('navigator.clipboard.readText()'), 'before', 'the old token is not copied')
  t.is(await first.getByRole('listitem').filter({ hasText: 'access_token' }).count(), 0)
  t.true(await first.getByRole('link', { name: 'Sign in' }).isVisible())
  t.false(await first.getByRole('button', { name: 'Copy token' }).isVisible())
  t.is(
    await first.evaluate('document.activeElement.tagName'),
    'H1',
    'the focus moves to the heading, because its button is hidden'
  )
})

test('when the page notices that the user has signed out or changed in another tab, it no longer shows the data of the old user', async (t, visit) => {
  const { page: first, newTab, url } = await openSignedIn(deployWithDemo(t, { mode: 'dual' }), visit)
  const answers = first.locator('.answer')
  const tryHubs = async () => {
    const button = first.getByRole('button', { name: 'Try api/hubs' })
    if (!(await button.isVisible())) await first.locator('summary').click()
    await button.click()
    await answers.getByText('Bridges').waitFor()
  }
  await tryHubs()
  await first.getByRole('button', { name: 'Try healthz' }).click()
  await status(first, 'healthz responded')
  const second = await newTab()
  await second.goto(`${url}api/auth/logout`)
  await status(second, 'You are not signed in.')
  await first.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
  await status(first, 'You are no longer signed in.')
  const left = (await answers.allInnerTexts()).filter(text => text !== '')
  t.deepEqual(left.length, 1, 'the state of the server is not the data of a user')
  t.regex(left.join(), /"status": "ok"/)

  await signInAs(second, 'Ada Lovelace')
  await first.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
  await status(first, signedIn)
  await tryHubs()
  await second.goto(`${url}api/auth/logout`)
  await signInAs(second, 'Grace Hopper')
  await first.getByRole('button', { name: 'Try api/auth/profile' }).click()
  await status(first, 'You are signed in as Grace Hopper.')
  t.is(await answers.getByText('Bridges').count(), 0)
  t.is(await answers.getByText('Grace Hopper').count(), 1)
  t.is(await first.getByText('Refreshed at').count(), 0)
})

test('the back button after a login leads to a page with a link to the application, and the session stays', async (t, visit) => {
  const { page, url } = await open(deployWithDemo(t), visit)
  await signInAs(page, 'Ada Lovelace')
  await page.goBack()
  await page.getByRole('heading', { name: 'This sign-in is over' }).waitFor()
  await page.getByRole('link', { name: 'Back to the application' }).click()
  await status(page, signedIn)
  await page.goBack()
  await page.goBack()
  t.is(page.url(), url)
  await status(page, signedIn)
})

test('the back button after a sign-out shows that no user is signed in', async (t, visit) => {
  const { page, url } = await openSignedIn(deployWithHostileIdp(t, { mode: 'dual' }), visit)
  await page.goto(`${url}your-pages.html`)
  await page.goto(`${url}api/auth/logout`)
  await status(page, 'You are not signed in.')
  await page.goBack()
  await page.goBack()
  t.is(page.url(), url)
  await page.getByText(/You are (not|no longer) signed in\./).waitFor()
  t.false(await page.getByText('Ada Lovelace').isVisible())
})

test('the page explains a profile request that fails or hangs, and repeats one by itself after Retry-After, and the session stays', async (t, visit) => {
  const deploying = deployWithHostileIdp(t, { settings: { platform: { timeout: 4 } } })
  const { page, idp, clock } = await openSignedIn(deploying, visit)
  idp.failWhen('userinfo', () => faults.html(500))
  await page.reload()
  await page.getByText('You are still signed in, but the sign-in service sent no usable response.').waitFor()
  t.deepEqual(await accessibilityProblems(page), [])
  idp.heal()
  idp.failWhen('userinfo', () => faults.hang())
  await page.getByRole('button', { name: 'Try again now' }).click()
  await page.getByText('You are still signed in, but the sign-in service is taking too long.').waitFor()
  idp.heal()
  await page.getByRole('button', { name: 'Try again now' }).click()
  await status(page, signedIn)
  t.is(idp.tokenRequests.length, 1)
  clock.advanceSeconds(3600)
  idp.fail('token', faults.tooManyRequests(2))
  await page.reload()
  await page.getByText('not available just now').waitFor()
  await status(page, signedIn)
})

test('the page explains a lost network connection and notices its return', async (t, visit) => {
  const { page, context } = await openSignedIn(deployWithHostileIdp(t, { mode: 'dual' }), visit)
  await context.setOffline(true)
  await page.getByRole('button', { name: 'Copy token' }).click()
  await page.getByText('The server cannot be reached.').waitFor()
  t.deepEqual(await accessibilityProblems(page), [])
  await context.setOffline(false)
  await status(page, signedIn)
})
