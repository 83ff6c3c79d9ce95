import type { Page, Response } from 'playwright-core'
import { accessibilityProblems, browserTest as test } from '../helpers/chromium.js'
import { deployWithDemo, deployWithHostileIdp } from '../helpers/deployment.js'
import { type Fault, faults, type HostileIdp } from '../helpers/hostile-idp/index.js'
import { open, status } from './starter-page.js'

test('a login that was denied at the provider leads to an error page, and a new login succeeds', async (t, visit) => {
  const { page } = await open(deployWithDemo(t, { mode: 'dual' }), visit)
  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.getByRole('heading', { name: 'Access was not granted' }).waitFor()
  await page.getByRole('link', { name: 'Sign in again' }).click()
  await page.getByRole('button', { name: 'Ada Lovelace' }).click()
  await status(page, 'You are signed in as Ada Lovelace.')
  t.pass()
})

const logIn = (page: Page, url: string) => page.goto(`${url}api/auth/login`)

type Trouble = readonly [
  what: string,
  status: number,
  heading: string,
  wayForward: 'Sign in again' | 'Go to the start page',
  happen: (page: Page, url: string, idp: HostileIdp) => Promise<Response | null>
]

const sendForm = async (page: Page, url: string) => {
  await page.goto(`${url}your-pages.html`)
  const answer = page.waitForResponse(`${url}api/auth/logout`)
  await page.evaluate(`
    const form = Object.assign(document.createElement('form'), { method: 'post', action: '${url}api/auth/logout' })
    document.body.append(form)
    form.submit()`)
  return answer
}

const beRefused = (page: Page, url: string, idp: HostileIdp) => {
  idp.settings.login = { error: 'invalid_scope', errorDescription: '<b>Contact evil.example</b>' }
  return logIn(page, url)
}

const troubles: readonly Trouble[] = [
  ['an error of the provider', 400, 'This sign-in could not be completed', 'Sign in again', beRefused],
  ['no page', 404, 'There is no page here', 'Go to the start page', (page, url) => page.goto(`${url}no/such/page`)],
  ['a form sent to a route', 405, 'This URL cannot be used that way', 'Go to the start page', sendForm]
]

for (const [what, code, title, wayForward, happen] of troubles) {
  test(`the error page for ${what} has the right heading and a link that works`, async (t, visit) => {
    const { url, idp } = await deployWithHostileIdp(t, { mode: 'dual' })
    const { page, context } = await visit()
    const answer = await happen(page, url, idp)
    await page.getByRole('heading', { name: title, level: 1 }).waitFor()
    t.is(answer?.status(), code)
    const headers = (await answer?.allHeaders()) ?? {}
    t.regex(headers['content-security-policy'] ?? '', /^default-src 'none'; /)
    t.is(headers['cache-control'], 'no-store')
    // If the policy refused the style, the page would have square corners.
    t.not(await page.locator('main').evaluate('main => getComputedStyle(main).borderRadius'), '0px')
    t.notRegex(await page.content(), /evil\.example/)
    t.deepEqual(await accessibilityProblems(page), [])

    idp.settings.login = {}
    t.is(await page.getByRole('link').first().textContent(), wayForward)
    await page.getByRole('link', { name: wayForward }).click()
    const signsIn = wayForward === 'Sign in again'
    await status(page, signsIn ? 'You are signed in as Ada Lovelace.' : 'You are not signed in.')
    const cookies = (await context.cookies(url)).map(({ name }) => name)
    t.is(cookies.includes('platform_session'), signsIn)
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

const retries: readonly (readonly [when: string, faults: readonly Fault[]])[] = [
  ['at the code exchange', [faults.tooManyRequests(2)]],
  ['after the code exchange', [faults.none, faults.tooManyRequests(1), faults.tooManyRequests(2)]]
]

for (const [when, inOrder] of retries) {
  test(`if a provider is busy ${when}, the page says so and finishes the login by itself`, async (t, visit) => {
    const { url, idp } = await deployWithHostileIdp(t, { mode: 'dual' })
    const { page } = await visit()
    idp.fail('token', ...inOrder)
    t.is((await logIn(page, url))?.status(), 503)
    await page.getByRole('heading', { name: 'The service is busy', level: 1 }).waitFor()
    t.deepEqual(await accessibilityProblems(page), [])
    await status(page, 'You are signed in as Ada Lovelace.')
    t.deepEqual(idp.reuses, [])
  })
}
