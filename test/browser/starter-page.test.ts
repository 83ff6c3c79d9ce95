import test from 'ava'
import type { Response } from 'playwright-core'
import { accessibilityProblems, browserTests } from '../helpers/chromium.js'
import { deployWithDemo, deployWithHostileIdp } from '../helpers/deployment.js'
import { signInAs, status } from './starter-page.js'

const browserTest = browserTests(test)

for (const mode of ['single', 'dual'] as const) {
  browserTest(
    `a person signs in by the demo's form and sees their name, then signs out (${mode})`,
    async (t, visit) => {
      const { url } = await deployWithDemo(t, { mode })
      const { page, context } = await visit()
      await page.goto(url)
      await status(page, 'You are not signed in.')
      t.deepEqual(await accessibilityProblems(page), [])

      await page.getByRole('link', { name: 'Sign in' }).click()
      await page.getByRole('heading', { name: 'Demo sign-in' }).waitFor()
      t.deepEqual(await accessibilityProblems(page), [])
      await page.getByRole('button', { name: 'Grace Hopper' }).click()

      await status(page, 'You are signed in as Grace Hopper.')
      t.is(page.url(), url)
      t.is(await page.locator('#token').isVisible(), mode === 'dual')
      t.deepEqual(await accessibilityProblems(page), [])

      await page.getByRole('link', { name: 'Sign out' }).click()
      await status(page, 'You are not signed in.')
      t.is(page.url(), url)
      t.deepEqual(
        (await context.cookies(url)).map(({ name }) => name),
        []
      )
    }
  )
}

browserTest('the public token counts down, can be copied, and is renewed when it runs out', async (t, visit) => {
  const { url, demo } = await deployWithDemo(t, { mode: 'dual', tokenLifetimeSeconds: 3 })
  const { page } = await visit({ permissions: ['clipboard-read', 'clipboard-write'] })
  const copyToken = async () => {
    await page.getByRole('button', { name: 'Copy token' }).click()
    await page.getByText('Copied.').or(page.getByText('Renewed at')).waitFor()
    return page.evaluate('navigator.clipboard.readText()')
  }
  await page.goto(url)
  const firstAnswer = page.waitForResponse(response => isTokenAnswer(response))
  await signInAs(page, 'Ada Lovelace')
  const first = await tokenIn(await firstAnswer)
  const renewal = page.waitForResponse(async response => isTokenAnswer(response) && (await tokenIn(response)) !== first)
  t.regex((await page.locator('#token-life').textContent()) ?? '', /^[0-3] s$/)
  t.regex(String(await copyToken()), /^ey[\w-]+\.[\w-]+\.[\w-]+$/)

  await renewal
  await page.getByText(/^Renewed at /).waitFor()
  t.regex((await page.locator('#token-life').textContent()) ?? '', /^[0-3] s$/)
  t.not(await copyToken(), first)
  t.true(demo.calls.refreshToken >= 3, 'one refresh belongs to the login, two to each renewal')
  t.is(demo.calls.reusedRefreshToken, 0)
})

browserTest('the countdown is not read out every second', async (t, visit) => {
  const { url } = await deployWithHostileIdp(t, { mode: 'dual' })
  const { page } = await visit()
  await page.goto(`${url}api/auth/login`)
  await status(page, 'You are signed in as Ada Lovelace.')
  await page.evaluate(`
    globalThis.announced = []
    const observer = new MutationObserver(changes => announced.push(...changes.map(({ target }) => target.textContent)))
    for (const region of document.querySelectorAll('[role=status], [role=alert], [aria-live]')) {
      observer.observe(region, { childList: true, characterData: true, subtree: true })
    }
    globalThis.ticks = 0
    new MutationObserver(() => ticks++).observe(document.querySelector('#token-life'), { childList: true })`)
  await page.waitForFunction('ticks >= 2')
  t.deepEqual(await page.evaluate('announced'), [])
})

browserTest('without a clipboard the token is copied another way, or shown to be copied', async (t, visit) => {
  const { url } = await deployWithDemo(t, { mode: 'dual' })
  const { page } = await visit()
  await page.addInitScript('Object.defineProperty(navigator, "clipboard", { value: undefined })')
  await page.goto(url)
  await signInAs(page, 'Ada Lovelace')
  const copy = page.getByRole('button', { name: 'Copy token' })
  await copy.click()
  await page.getByText('Copied.').waitFor()
  t.false(await page.getByRole('textbox').isVisible())

  await page.evaluate('document.execCommand = () => false')
  await copy.click()
  const field = page.getByRole('textbox', { name: /by hand/ })
  await field.waitFor()
  const selected = await page.evaluate('getSelection().toString()')
  t.regex(await field.inputValue(), /^ey/)
  t.is(selected, await field.inputValue())
  t.deepEqual(await accessibilityProblems(page), [])
})

browserTest('everything can be done by keyboard alone', async (t, visit) => {
  const { url } = await deployWithDemo(t, { mode: 'dual' })
  const { page } = await visit()
  const focused = () => page.evaluate('document.activeElement.textContent.trim()')
  await page.goto(url)
  await status(page, 'You are not signed in.')
  await page.keyboard.press('Tab')
  t.is(await focused(), 'Sign in')
  await page.keyboard.press('Enter')
  await page.getByLabel('User name').waitFor()
  await page.keyboard.type('Kay')
  await page.keyboard.press('Enter')
  await status(page, 'You are signed in as Kay.')
  for (const name of ['Sign out', 'Copy token', 'api/auth/profile', 'api/auth/token', 'Put your own pages here']) {
    await page.keyboard.press('Tab')
    t.is(await focused(), name)
  }
})

browserTest('without a script the page still leads through the login', async (t, visit) => {
  const { url } = await deployWithDemo(t)
  const { page, context } = await visit({ javaScriptEnabled: false })
  await page.goto(url)
  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByRole('button', { name: 'Ada Lovelace' }).click()
  await page.waitForURL(url)
  t.true((await context.cookies(url)).some(({ name }) => name === 'platform_session'))
  t.is((await context.request.get(`${url}api/auth/profile`)).status(), 200)
})

browserTest('the pages work below a path that a proxy strips', async (t, visit) => {
  const { url } = await deployWithDemo(t, { mode: 'dual', basePath: '/tools/viewer' })
  const { page } = await visit()
  await page.goto(url)
  await signInAs(page, 'Ada Lovelace')
  t.is(page.url(), url)
  await page.getByRole('link', { name: 'Put your own pages here' }).click()
  await page.getByRole('heading', { name: 'Put your own pages here', level: 1 }).waitFor()
  t.deepEqual(await accessibilityProblems(page), [])
  await page.getByRole('link', { name: 'Back to the start page' }).click()
  await status(page, 'You are signed in as Ada Lovelace.')
  await page.getByRole('link', { name: 'Sign out' }).click()
  await status(page, 'You are not signed in.')
  t.is(page.url(), url)
})

browserTest('on narrow and on wide screens nothing sticks out sideways', async (t, visit) => {
  const { url } = await deployWithDemo(t, { mode: 'dual' })
  const { page } = await visit()
  await page.goto(url)
  await signInAs(page, 'Ada Lovelace')
  for (const path of ['', 'your-pages.html', 'no/such/page']) {
    await page.goto(`${url}${path}`)
    if (path === '') await status(page, 'You are signed in as Ada Lovelace.')
    for (const width of [320, 360, 1600]) {
      await page.setViewportSize({ width, height: 640 })
      t.is(
        await page.evaluate('Math.max(0, document.documentElement.scrollWidth - innerWidth)'),
        0,
        `${path} at ${width}`
      )
    }
  }
})

browserTest('the starter page is five small requests, and none of them fails', async (t, visit) => {
  const { url } = await deployWithDemo(t, { mode: 'dual' })
  const { page, context } = await visit()
  await page.goto(url)
  await signInAs(page, 'Ada Lovelace')
  const answers: { path: string; status: number; bytes: number }[] = []
  context.on('requestfinished', async request => {
    const response = await request.response()
    const { responseBodySize } = await request.sizes()
    answers.push({ path: new URL(request.url()).pathname, status: response?.status() ?? 0, bytes: responseBodySize })
  })
  await page.reload()
  await status(page, 'You are signed in as Ada Lovelace.')
  await page.locator('#token').waitFor()
  const paints =
    'Object.fromEntries(performance.getEntriesByType("paint").map(({ name, startTime }) => [name, startTime]))'
  t.log(answers, await page.evaluate(paints))
  t.deepEqual(answers.map(({ path }) => path).sort(), [
    '/',
    '/api/auth/profile',
    '/api/auth/token',
    '/starter.css',
    '/starter.js'
  ])
  t.true(answers.every(({ status }) => status === 200 || status === 304))
})

function isTokenAnswer(response: Response): boolean {
  return response.url().endsWith('/api/auth/token') && response.ok()
}

async function tokenIn(response: Response): Promise<string> {
  return ((await response.json()) as { access_token: string }).access_token
}
