// Each error page has a way on, also in a frame, after a form, during an outage and with too many cookies.
import { createServer } from 'node:http'
import { browserTest as test } from '../helpers/chromium.js'
import { deployWithHostileIdp } from '../helpers/deployment.js'
import { listen } from '../helpers/ports.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { startUpstream } from '../helpers/upstream.js'

const head = (title: string) =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><link rel="icon" href="data:,">`
const files = {
  'index.html': `${head('Home')}<h1>Home</h1><iframe src="app.html" title="App"></iframe></html>`,
  'app.html': `${head('App')}<h1>Secret</h1></html>`,
  'form.html': `${head('Form')}<form method="post" action="/api/save"><textarea name="text"></textarea><button>Save</button></form></html>`
}

async function deploy(t: Parameters<typeof deployWithHostileIdp>[0]) {
  const upstream = await startUpstream(t)
  const settings = {
    wwwroot: await tempFolder(t, files),
    access: { files: ['/app.html'] },
    apiProxy: { rules: [`GET,POST /api/save ${upstream.origin}/save`] }
  }
  return { ...(await deployWithHostileIdp(t, { settings })), upstream }
}

test('the sign-in page carries the fragment of its URL, which the server never sees', async (t, visit) => {
  const { url } = await deploy(t)
  const { page } = await visit()
  t.is((await page.goto(`${url}app.html?a=1#/projects/5`))?.status(), 401)
  await page.evaluate('location.hash = "#/projects/6"')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByText('Secret').waitFor()
  t.is(page.url(), `${url}app.html?a=1#/projects/6`)
})

test('a protected page in a frame of this site signs in in a new tab, and then shows itself', async (t, visit) => {
  const { url } = await deploy(t)
  const { page, context } = await visit()
  await page.goto(url)
  const frame = page.frameLocator('iframe')
  const opened = context.waitForEvent('page')
  await frame.getByRole('link', { name: 'Sign in' }).click()
  const tab = await opened
  await tab.getByText('Secret').waitFor()
  t.is(await tab.evaluate('opener'), null)
  await frame.getByText('Secret').waitFor()
  t.is(page.url(), url)
})

test('in a frame of another site, a page says so, and its only link opens the start page in a new tab', async (t, visit) => {
  const { url } = await deploy(t)
  const other = createServer((_request, response) => {
    response
      .setHeader('Content-Type', 'text/html')
      .end(`${head('Other')}<iframe src="${url}app.html?secret" title="App"></iframe>`)
  })
  const { page, context } = await visit()
  await page.goto(`http://127.0.0.1:${await listen(t, other)}`)
  const frame = page.frameLocator('iframe')
  await frame.getByRole('heading', { name: 'Another site shows this page' }).waitFor()
  t.is(await frame.getByRole('link').count(), 1)
  const opened = context.waitForEvent('page')
  await frame.getByRole('link').click()
  const tab = await opened
  await tab.getByRole('heading', { name: 'Home' }).waitFor()
  t.deepEqual([tab.url(), await tab.evaluate('opener')], [url, null])
})

test('a form that was sent without a session is not lost, and is sent again after a sign-in in a new tab', async (t, visit) => {
  const { url, upstream } = await deploy(t)
  const { page, context } = await visit()
  await page.goto(`${url}form.html?id=7`)
  await page.getByRole('textbox').fill('an hour of work')
  await page.getByRole('button').click()
  await page.getByRole('heading', { name: 'Nothing was saved' }).waitFor()
  await page.goBack()
  t.is(await page.getByRole('textbox').inputValue(), 'an hour of work')
  await page.getByRole('button').click()
  await page.getByRole('heading', { name: 'Nothing was saved' }).waitFor()
  const opened = context.waitForEvent('page')
  await page.getByRole('link').click()
  const tab = await opened
  await tab.waitForURL(`${url}form.html?id=7`)
  t.is(upstream.requests.length, 0)
  await page.reload()
  t.is((await upstream.requests[0]?.body())?.toString(), 'text=an+hour+of+work')
})

test('during an outage, the page stays as it is, offers a sign-in after 30 seconds, and loads once when it helps', async (t, visit) => {
  const { url, idp, clock } = await deploy(t)
  const { page, context } = await visit()
  await page.clock.install()
  await page.goto(`${url}api/auth/login?return_to=/app.html`)
  await page.getByText('Secret').waitFor()
  clock.advanceSeconds(3605)
  await idp.offline()
  t.is((await page.goto(`${url}app.html`))?.status(), 503)
  await page.getByRole('heading', { name: 'You are still signed in' }).waitFor()
  let loads = 0
  page.on('load', () => {
    loads += 1
  })
  await page.keyboard.press('Tab')
  const focused = () => page.evaluate('document.activeElement.textContent')
  t.is(await focused(), 'Try again')
  const signIn = page.getByRole('link', { name: 'Sign in again' })
  t.false(await signIn.isVisible())
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const asked = page.waitForResponse(response => response.status() === 503)
    await page.clock.runFor(20_000)
    await asked
  }
  await page.getByText('Still not available. The next try is in').waitFor()
  await signIn.waitFor()
  t.deepEqual([loads, await focused()], [0, 'Try again'])
  await idp.online()
  clock.advanceSeconds(60)
  await page.clock.runFor(60_000)
  await page.getByText('Secret').waitFor()
  await page.waitForLoadState()
  t.is(loads, 1)
  t.is(context.pages().length, 1)
})

test('a browser whose cookies are too large gets a page that lists them, and one whose URL is too long another page', async (t, visit) => {
  const { url } = await deploy(t)
  const { page, context } = await visit()
  const cookies = Array.from({ length: 9 }, (_, index) => ({
    name: `other_app_${index}`,
    value: 'x'.repeat(3900 + index),
    url
  }))
  await context.addCookies(cookies)
  t.is((await page.goto(url))?.status(), 431)
  await page.getByRole('heading', { name: 'Your cookies for this site are too large' }).waitFor()
  const items = await page.getByRole('listitem').allTextContents()
  t.is(items[0], 'other_app_8: 3,920')
  t.is(items.length, 9)
  t.is(await page.getByRole('link').count(), 1)
  await context.clearCookies()
  await page.getByRole('link', { name: 'Try again' }).click()
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  for (const few of [[], cookies.slice(0, 1)]) {
    await context.addCookies(few)
    t.is((await page.goto(`${url}search?q=${'y'.repeat(40_000)}`))?.status(), 431)
    await page.getByRole('heading', { name: 'The request is too large' }).waitFor()
    await page.getByRole('link', { name: 'Go to the start page' }).click()
    await page.getByRole('heading', { name: 'Home' }).waitFor()
  }
})
