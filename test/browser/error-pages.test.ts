import type { Page, Response } from 'playwright-core'
import { accessibilityProblems, browserTest as test } from '../helpers/chromium.js'
import { deployWithDemo, deployWithHostileIdp } from '../helpers/deployment.js'
import { faults, type HostileIdp } from '../helpers/hostile-idp/index.js'
import { status } from './starter-page.js'

test('a login that was denied at the provider leads to an error page, and a new login succeeds', async (t, visit) => {
  const { url } = await deployWithDemo(t, { mode: 'dual' })
  const { page } = await visit()
  await page.goto(url)
  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.getByRole('heading', { name: 'Access was not granted' }).waitFor()
  await page.getByRole('link', { name: 'Sign in again' }).click()
  await page.getByRole('button', { name: 'Ada Lovelace' }).click()
  await status(page, 'You are signed in as Ada Lovelace.')
  t.pass()
})

interface Trouble {
  readonly what: string
  readonly status: number
  readonly heading: string
  readonly wayForward: 'Sign in again' | 'Go to the start page'
  happen(page: Page, url: string, idp: HostileIdp): Promise<Response | null>
}

const logIn = (page: Page, url: string) => page.goto(`${url}api/auth/login`)

const troubles: readonly Trouble[] = [
  {
    what: 'an error of the provider at the login',
    status: 400,
    heading: 'This sign-in could not be completed',
    wayForward: 'Sign in again',
    happen: (page, url, idp) => {
      idp.settings.login = { error: 'invalid_scope', errorDescription: '<b>Contact evil.example</b>' }
      return logIn(page, url)
    }
  },
  {
    what: 'an address without a page',
    status: 404,
    heading: 'There is no page here',
    wayForward: 'Go to the start page',
    happen: (page, url) => page.goto(`${url}no/such/page`)
  },
  {
    what: 'a form sent to a route',
    status: 405,
    heading: 'This URL cannot be used that way',
    wayForward: 'Go to the start page',
    happen: async (page, url) => {
      await page.goto(`${url}your-pages.html`)
      const answer = page.waitForResponse(`${url}api/auth/logout`)
      await page.evaluate(`
        const form = document.createElement('form')
        form.method = 'post'
        form.action = '${url}api/auth/logout'
        document.body.append(form)
        form.submit()`)
      return answer
    }
  }
]

for (const trouble of troubles) {
  test(`the error page for ${trouble.what} has the right heading and a link that works`, async (t, visit) => {
    const { url, idp } = await deployWithHostileIdp(t, { mode: 'dual' })
    const { page, context } = await visit()
    const answer = await trouble.happen(page, url, idp)
    await page.getByRole('heading', { name: trouble.heading, level: 1 }).waitFor()
    t.is(answer?.status(), trouble.status)
    const headers = (await answer?.allHeaders()) ?? {}
    t.regex(headers['content-security-policy'] ?? '', /^default-src 'none'; /)
    t.is(headers['cache-control'], 'no-store')
    // If the policy refused the style, the page would have square corners.
    t.not(await page.locator('main').evaluate('main => getComputedStyle(main).borderRadius'), '0px')
    t.notRegex(await page.content(), /evil\.example/)
    t.deepEqual(await accessibilityProblems(page), [])

    idp.settings.login = {}
    const forward = page.getByRole('link', { name: trouble.wayForward })
    t.is(await page.getByRole('link').first().textContent(), trouble.wayForward)
    await forward.click()
    const signsIn = trouble.wayForward === 'Sign in again'
    await status(page, signsIn ? 'You are signed in as Ada Lovelace.' : 'You are not signed in.')
    t.is(
      (await context.cookies(url)).some(({ name }) => name === 'platform_session'),
      signsIn
    )
  })
}

test('while only the provider is down, the profile page offers to try again', async (t, visit) => {
  const { url, idp } = await deployWithHostileIdp(t, { mode: 'dual' })
  const { page } = await visit()
  await logIn(page, url)
  idp.failWhen('userinfo', () => faults.html(500))
  t.is((await page.goto(`${url}api/auth/profile`))?.status(), 502)
  await page.getByRole('heading', { name: 'You are still signed in', level: 1 }).waitFor()
  t.deepEqual(await accessibilityProblems(page), [])
  idp.heal()
  await page.getByRole('link', { name: 'Try again' }).click()
  await page.getByText('{"name":"Ada Lovelace"}').waitFor()
  t.is(page.url(), `${url}api/auth/profile`)
})

const retries: readonly { readonly what: string; readonly spoil: (idp: HostileIdp) => void }[] = [
  { what: 'at the code exchange', spoil: idp => idp.fail('token', faults.tooManyRequests(2)) },
  {
    what: 'after the code exchange',
    spoil: idp => idp.fail('token', faults.none, faults.tooManyRequests(1), faults.tooManyRequests(2))
  }
]

for (const { what, spoil } of retries) {
  test(`if a provider is busy ${what}, the page says so and finishes the login by itself`, async (t, visit) => {
    const { url, idp } = await deployWithHostileIdp(t, { mode: 'dual' })
    const { page } = await visit()
    spoil(idp)
    const answer = await logIn(page, url)
    t.is(answer?.status(), 503)
    await page.getByRole('heading', { name: 'The service is busy', level: 1 }).waitFor()
    t.deepEqual(await accessibilityProblems(page), [])
    await status(page, 'You are signed in as Ada Lovelace.')
    t.deepEqual(idp.reuses, [])
  })
}
