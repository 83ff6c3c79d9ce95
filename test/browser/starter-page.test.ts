// The internal token has the wide scope and stays on the server. In dual mode pages also get a public token, which has
// only the public scopes. In single mode there is only one token, and it stays on the server.
import { resolve } from 'node:path'
import type { Response } from 'playwright-core'
import { offeredUsers } from '#src/demo/index.js'
import { accessibilityProblems, serialBrowserTest as serialTest, browserTest as test } from '../helpers/chromium.js'
import { deployWithDemo, deployWithHostileIdp } from '../helpers/deployment.js'
import { eventually } from '../helpers/eventually.js'
import { modes } from '../helpers/modes.js'
import { words } from '../helpers/words.js'
import { open, openSignedIn, signInAs, status } from './starter-page.js'

for (const mode of modes) {
  test(`a user signs in with the demo's form, sees their name and signs out (${mode} mode)`, async (t, visit) => {
    const { page, context, url } = await open(deployWithDemo(t, { mode }), visit)
    await status(page, 'You are not signed in.')
    const header = await page.locator('header').innerText()
    t.is(header.replaceAll(/\s+/g, ' '), `platform-auth-server ${mode} mode demo identity provider`)

    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Demo sign-in' }).waitFor()
    await page.getByRole('button', { name: 'Grace Hopper' }).click()

    await status(page, 'You are signed in as Grace Hopper.')
    t.is(page.url(), url)
    t.is(await page.locator('#token').isVisible(), mode === 'dual')

    await page.getByRole('link', { name: 'Sign out' }).click()
    await status(page, 'You are not signed in.')
    t.is(page.url(), url)
    const cookies = (await context.cookies(url)).map(({ name }) => name)
    t.deepEqual(cookies, [])
  })
}

serialTest(
  'the page shows the remaining lifetime of the public token, copies it and refreshes it when it expires',
  async (t, visit) => {
    const { url, demo, clock } = await deployWithDemo(t, { mode: 'dual' })
    const { page } = await visit({ permissions: ['clipboard-read', 'clipboard-write'] })
    const copyToken = async () => {
      await page.getByRole('button', { name: 'Copy token' }).click()
      await page.getByText('Copied.').waitFor()
      return page.evaluate('navigator.clipboard.readText()')
    }
    await page.clock.install()
    await page.goto(url)
    const firstAnswer = page.waitForResponse(response => isTokenAnswer(response))
    await signInAs(page, 'Ada Lovelace')
    const first = await tokenIn(await firstAnswer)
    const refreshed = page.waitForResponse(
      async response => isTokenAnswer(response) && (await tokenIn(response)) !== first
    )
    t.regex((await page.locator('#token-life').textContent()) ?? '', /^59 min \d+ s$/)
    t.regex(String(await copyToken()), /^ey[\w-]+\.[\w-]+\.[\w-]+$/)

    clock.advanceSeconds(3600)
    await page.clock.fastForward('01:00:00')
    await refreshed
    await page.getByText(/^Refreshed at /).waitFor()
    t.true(await page.locator('#life.refilled').isVisible())
    t.regex((await page.locator('#token-life').textContent()) ?? '', /^59 min \d+ s$/)
    t.not(await copyToken(), first)
    t.true(demo.calls.refreshToken >= 3, 'the login causes one refresh request and each refresh two')
    t.is(demo.calls.reusedRefreshToken, 0)
  }
)

test('screen readers do not announce every second of the countdown, and without a demo there is neither a button that lets a token expire nor a route of the demo', async (t, visit) => {
  const settings = { wwwroot: undefined }
  const { page } = await openSignedIn(deployWithHostileIdp(t, { mode: 'dual', settings }), visit)
  t.false(await page.locator('#fifty').isVisible())
  await page.evaluate(`
    globalThis.announced = []
    const observer = new MutationObserver(changes => announced.push(...changes.map(({ target }) => target.textContent)))
    for (const region of document.querySelectorAll('[role=status], [role=alert], [aria-live]')) {
      observer.observe(region, { childList: true, characterData: true, subtree: true })
    }
    let ticks = 0
    const life = document.querySelector('#token-life')
    new MutationObserver(() => { if (++ticks === 2) life.dataset.ticked = 'twice' }).observe(life, { childList: true })`)
  await page.locator('#token-life[data-ticked]').waitFor()
  t.deepEqual(await page.evaluate('announced'), [])
  await page.locator('summary').click()
  t.is(await page.getByRole('button', { name: 'Try healthz' }).count(), 1)
  t.is(await page.getByRole('button', { name: 'Try api/hubs' }).count(), 0, 'a rule of the demo forwards it')
})

test('without a clipboard the page copies the token in another way, or selects it for copying by hand', async (t, visit) => {
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

test('every function of the page works with the keyboard', async (t, visit) => {
  const { url } = await deployWithDemo(t, { mode: 'dual' })
  const { page } = await visit()
  const focused = () => page.evaluate('document.activeElement.textContent.trim()')
  await page.goto(url)
  await status(page, 'You are not signed in.')
  await page.keyboard.press('Tab')
  t.is(await focused(), 'Sign in')
  await page.keyboard.press('Enter')
  await page.getByLabel('user name').waitFor()
  for (const name of [...offeredUsers, '']) {
    await page.keyboard.press('Tab')
    t.is(await focused(), name)
  }
  await page.keyboard.type('Kay')
  await page.keyboard.press('Enter')
  await status(page, 'You are signed in as Kay.')
  const burst = 'Expire my token and send 50 requests'
  const routes = 'The routes of this server'
  for (const name of [
    'Sign out',
    'Pages to copy',
    burst,
    'Copy token',
    routes,
    ...Array.from({ length: 7 }, () => 'Try')
  ]) {
    await page.keyboard.press('Tab')
    t.is(await focused(), name)
    if (name === routes) await page.keyboard.press('Enter')
  }
})

test('the pages need no horizontal scrolling on narrow and wide screens', async (t, visit) => {
  const { page, url } = await openSignedIn(deployWithDemo(t, { mode: 'dual' }), visit)
  for (const path of ['', 'your-pages.html', 'no/such/page']) {
    await page.goto(`${url}${path}`)
    if (path === '') await status(page, 'You are signed in as Ada Lovelace.')
    for (const width of [320, 360, 1600]) {
      await page.setViewportSize({ width, height: 640 })
      const hidden = await page.evaluate('Math.max(0, document.documentElement.scrollWidth - innerWidth)')
      t.is(hidden, 0, `${path} at ${width}`)
    }
  }
})

test('the starter page of a demo sends nine requests, and none of them fails', async (t, visit) => {
  const { page, context } = await openSignedIn(deployWithDemo(t, { mode: 'dual' }), visit)
  const answers: { path: string; status: number; bytes: number }[] = []
  context.on('requestfinished', async request => {
    const response = await request.response()
    const { responseBodySize } = await request.sizes()
    answers.push({ path: new URL(request.url()).pathname, status: response?.status() ?? 0, bytes: responseBodySize })
  })
  await page.reload()
  await status(page, 'You are signed in as Ada Lovelace.')
  await page.locator('#token').waitFor()
  const expected = words`
    / /api/auth/profile /api/auth/token /copy.js /fifty.js /starter-about.json /starter-base.css
    /starter.css /starter.js`
  await eventually(() => answers.length >= expected.length)
  t.deepEqual(answers.map(({ path }) => path).sort(), expected)
  t.true(answers.every(({ status }) => status === 200 || status === 304))
})

test('if no user is signed in, the page says so without an error in the console, and the first screen has the sign-in and the experiment', async (t, visit) => {
  const { url } = await deployWithDemo(t, { mode: 'dual' })
  const { page } = await visit()
  const messages: string[] = []
  page.on('console', message => messages.push(message.text()))
  for (const [width, height] of [
    [1280, 720],
    [390, 844]
  ] as const) {
    await page.setViewportSize({ width, height })
    await page.goto(url)
    await status(page, 'You are not signed in.')
    for (const part of ['#intro', '#sign-in', '.before', '.picture']) {
      const { y, height: size } = (await page.locator(part).boundingBox()) ?? { y: height, height: 0 }
      t.true(size > 0 && y + size <= height, `${part} ends at ${y + size} of ${height}`)
    }
    t.false(await page.locator('#fifty .button').isVisible())
  }
  t.deepEqual(await accessibilityProblems(page), [])
  t.deepEqual(messages, [])
  await page.locator('summary').click()
  const shown = (await page.locator('.answer').allInnerTexts()).filter(text => text !== '')
  t.deepEqual(shown, [])
  t.false(await page.locator('.answer').first().isVisible(), 'an empty box would look like an input')
})

test('after signing in, the page first shows the folder for custom pages', async (t, visit) => {
  const { page } = await open(deployWithDemo(t, { mode: 'dual', settings: { wwwroot: undefined } }), visit, {
    viewport: { width: 375, height: 667 }
  })
  t.false(await page.locator('#next').isVisible())
  await signInAs(page, 'Ada Lovelace')
  const next = page.getByRole('region', { name: 'put your pages here' })
  t.is(await next.getByText(resolve('wwwroot'), { exact: true }).count(), 1)
  t.is(await next.getByText('Create this folder, put an index.html into it, and restart the server.').count(), 1)
  const box = await next.boundingBox()
  t.true(box !== null && box.y + box.height <= 667, 'the next step is visible without scrolling')
})

test('the button of the demo lets a token expire, and fifty requests cause one refresh', async (t, visit) => {
  const { url, demo } = await deployWithDemo(t, { mode: 'dual' })
  const { page } = await visit({ viewport: { width: 375, height: 667 } })
  const statuses: number[] = []
  await page.goto(url)
  await signInAs(page, 'Ada Lovelace')
  page.on('response', response => {
    if (response.url().endsWith('/api/auth/profile')) statuses.push(response.status())
  })
  const before = demo.calls.refreshToken
  await page.getByRole('button', { name: 'send 50 requests' }).click()
  await status(page, 'The identity provider received one refresh')
  await status(page, '50 of 50 requests got 200.')
  await status(page, 'No user was signed out.')
  t.deepEqual(statuses.slice(0, 50), new Array(50).fill(200))
  t.is(demo.calls.refreshToken - before, 2)
  t.is(demo.calls.reusedRefreshToken, 0)
  t.is(await page.locator('.dots .good').count(), 50)
  t.is(await page.locator('.picture text').textContent(), '1 refresh')
  t.is(await page.evaluate('Math.max(0, document.documentElement.scrollWidth - innerWidth)'), 0)
  t.deepEqual(await accessibilityProblems(page), [])

  await page.context().clearCookies()
  await page.getByRole('button', { name: 'send 50 requests' }).click()
  await status(page, 'You are no longer signed in. Sign in, and try again.')
})

const expected: Readonly<Record<'signed out' | 'single' | 'dual', Readonly<Record<string, RegExp>>>> = {
  'signed out': {
    'api/auth/profile': /^401 +\d+ ms\s+cache-control: no-store\s+\(empty body\)$/,
    'api/auth/token': /^401 +\d+ ms[\s\S]*\(empty body\)$/,
    'api/auth/logout': /^Redirect +\d+ ms/,
    healthz: /^200 +\d+ ms[\s\S]*"status": "ok"/,
    readyz: /^200 +\d+ ms[\s\S]*"status": "ready"/
  },
  single: {
    'api/auth/profile': /^200[\s\S]*"name": "Ada Lovelace"/,
    'api/auth/token': /^404[\s\S]*"error": "not_found"/
  },
  dual: {
    'api/auth/profile': /^200[\s\S]*"name": "Ada Lovelace"/,
    'api/auth/token': /^200[\s\S]*"access_token": "ey[\w-]{10}…[\w-]{6}",\s+"expires_in": \d+/,
    'api/hubs': /^200[\s\S]*Bridges/
  }
}

for (const [state, answers] of Object.entries(expected)) {
  test(`the page shows the response of every route that a user tries: ${state}`, async (t, visit) => {
    const { page } = await open(deployWithDemo(t, { mode: state === 'single' ? 'single' : 'dual' }), visit)
    await status(page, 'You are not signed in.')
    if (state !== 'signed out') await signInAs(page, 'Ada Lovelace')
    await page.locator('summary').click()
    for (const [path, answer] of Object.entries(answers)) {
      await page.getByRole('button', { name: `Try ${path}` }).click()
      await status(page, `${path} responded`)
      const shown = page
        .getByRole('listitem')
        .filter({ has: page.getByLabel(`Try ${path}`) })
        .locator('.answer')
      t.regex(await shown.innerText(), answer)
    }
    t.deepEqual(await accessibilityProblems(page), [])
  })
}

test('the login button leads through a login and back, and the logout button ends the session', async (t, visit) => {
  const { url } = await deployWithDemo(t, { mode: 'dual' })
  const { page, context } = await visit()
  // While the page starts, an event makes it ask for the session, and the response takes longer than the start.
  await page.addInitScript(`
      const { fetch } = window
      window.fetch = (...given) => {
        if (String(given[0]).includes('starter-about')) dispatchEvent(new Event('online'))
        const answer = fetch(...given)
        return String(given[0]).includes('profile') ? new Promise(done => setTimeout(done, 200, answer)) : answer
      }`)
  await page.goto(url)
  await page.locator('summary').click()
  await page.getByRole('button', { name: 'Try api/auth/login' }).click()
  await page.getByRole('button', { name: 'Zaha Hadid' }).click()
  await status(page, 'You are signed in as Zaha Hadid.')
  await page.locator('summary').click()
  const login = page.getByRole('listitem').filter({ has: page.getByLabel('Try api/auth/login') })
  await login.getByText('sent you back to api/auth/callback').waitFor()
  // The time would mostly be that of the user at the sign-in page.
  t.regex(await login.locator('.answer').innerText(), /^302\n/)
  await page.getByRole('button', { name: 'Try api/auth/logout' }).click()
  await status(page, 'You are no longer signed in.')
  t.deepEqual(await context.cookies(url), [])
})

test('on a phone the demo shows its users first, and Deny is visible without scrolling', async (t, visit) => {
  const viewport = { width: 375, height: 667 }
  const { page } = await open(deployWithDemo(t, { mode: 'dual' }), visit, { viewport }, 'api/auth/login')
  t.deepEqual(await page.getByRole('button').allTextContents(), [...offeredUsers, 'Sign in', 'Deny'])
  const box = await page.getByRole('button', { name: 'Deny' }).boundingBox()
  t.true(box !== null && box.y + box.height <= 667, `Deny ends at ${box && box.y + box.height}`)
  t.deepEqual(await accessibilityProblems(page), [])
})

serialTest(
  'code blocks in the guide have colours, scroll horizontally and can be copied, and no flag is broken into two lines',
  async (t, visit) => {
    const { url } = await deployWithDemo(t)
    const { page } = await visit({
      viewport: { width: 375, height: 667 },
      permissions: ['clipboard-read', 'clipboard-write']
    })
    await page.goto(`${url}your-pages.html`)
    const code = page.getByRole('region', { name: 'index.html' })
    await code.locator('.string', { hasText: "'/api/auth/client.js'" }).waitFor()
    const words = await code.locator('.word').allInnerTexts()
    t.deepEqual(words.slice(0, 3), ['<!doctype', '<html', '<meta'])
    const heights = 'Array.from(document.querySelectorAll(":not(pre) > code"), code => code.getClientRects().length)'
    t.deepEqual(new Set((await page.evaluate(heights)) as number[]), new Set([1]))
    await code.scrollIntoViewIfNeeded()
    t.true(await code.evaluate('(pre => pre.scrollWidth > pre.clientWidth)(document.querySelector("pre"))'))
    // Phones show no scrollbar, so a shadow at the edge of the block shows that the code continues.
    const { x, y, width } = (await code.boundingBox()) ?? { x: 0, y: 0, width: 0 }
    const edge = { x: x + width - 4, y: y + 4, width: 4, height: 4 }
    const atStart = await page.screenshot({ clip: edge })
    await code.evaluate('document.querySelector("pre").scrollLeft = 9999')
    t.notDeepEqual(await page.screenshot({ clip: edge }), atStart)
    await page.getByRole('button', { name: 'Copy index.html' }).click()
    await status(page, 'Copied.')
    t.is(await page.evaluate('navigator.clipboard.readText()'), await code.textContent())
    t.deepEqual(await accessibilityProblems(page), [])

    await page.evaluate('navigator.clipboard.writeText = () => Promise.reject(); document.execCommand = () => false')
    await page.getByRole('button', { name: 'Copy JavaScript' }).click()
    await status(page, 'Copy it by hand.')
    t.regex(String(await page.evaluate('getSelection().toString()')), /^import \{ getAccessToken \}/)
  }
)

function isTokenAnswer(response: Response): boolean {
  return response.url().endsWith('/api/auth/token') && response.ok()
}

async function tokenIn(response: Response): Promise<string> {
  return ((await response.json()) as { access_token: string }).access_token
}
