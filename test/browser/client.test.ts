// The module for pages, in pages with a strict Content-Security-Policy, below a base path that a proxy removes.
import type { ExecutionContext } from 'ava'
import type { Page } from 'playwright-core'
import { clientModule } from '#src/pages/index.js'
import { browserTest as test, type Visit } from '../helpers/chromium.js'
import { deployWithHostileIdp } from '../helpers/deployment.js'
import { fencedBlocks } from '../helpers/markdown.js'
import { readText } from '../helpers/repository.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { startUpstream } from '../helpers/upstream.js'

const basePath = '/tools/viewer'
const policy = "default-src 'none'; script-src 'self'; connect-src 'self'; worker-src 'self'; img-src data:"
const [draft] = fencedBlocks(readText('docs/pages/sign-in.md')).filter(({ language }) => language === 'html')
const files = {
  'draft.html': `<!doctype html>
<title>The page of the guide that keeps a draft</title>
<link rel="icon" href="data:,">
<textarea></textarea>
${draft?.text}
<script type="module" src="${basePath}/main.js"></script>`,
  'index.html': `<!doctype html>
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>Models</title>
<link rel="icon" href="data:,">
<script type="module" src="${basePath}/main.js"></script>`,
  'main.js': `import * as client from './api/auth/client.js'
Object.assign(globalThis, { client, ended: 0, changed: 0 })
addEventListener('sessionended', () => ended += 1)
addEventListener('sessionchanged', () => changed += 1)
const profile = await client.getProfile()
document.body.append(profile ? \`Hello, \${profile.name}\` : 'Not signed in')`,
  'worker.js': `import { apiFetch } from './api/auth/client.js'
apiFetch('${basePath}/api/hubs').then(({ status }) => postMessage(status), error => postMessage(String(error)))`
}

const shows = (page: Page, text: string) => page.getByText(text).waitFor()

/** Deploys the pages, and opens one of them in a browser with a session. */
async function openPage(t: ExecutionContext, visit: Visit) {
  const upstream = await startUpstream(t)
  const apiProxy = { rules: [`GET /api/hubs ${upstream.origin}/hubs`] }
  const settings = { wwwroot: await tempFolder(t, files), fallback: 'index.html', apiProxy }
  const deployment = await deployWithHostileIdp(t, { mode: 'dual', basePath, settings })
  const there = `${deployment.url}models/7?view=2d#part-3`
  const visitor = await visit()
  const { page, context } = visitor
  const logins: string[] = []
  context.on('request', request => request.url().includes('/api/auth/login') && logins.push(request.url()))
  await page.goto(there)
  await shows(page, 'Not signed in')
  void page.evaluate('client.signIn()').catch(() => {})
  await shows(page, 'Hello, Ada Lovelace')
  t.is(page.url(), there)
  return { ...deployment, ...visitor, there, logins }
}

const token = 'new Promise(resolve => client.getAccessToken((...given) => resolve(given)))'

test('a page deep in the site gets the token and the API, and refreshes once in mid-use', async (t, visit) => {
  const { page, clock, idp, logins } = await openPage(t, visit)
  const [first, seconds] = (await page.evaluate(token)) as [string, number]
  t.true(seconds > 3500)
  clock.advanceSeconds(3600)
  const statuses = `Promise.all(Array.from({ length: 20 }, () => client.apiFetch('${basePath}/api/hubs').then(r => r.status)))`
  t.deepEqual(await page.evaluate(statuses), new Array(20).fill(200))
  t.not(((await page.evaluate(token)) as [string, number])[0], first)
  t.is(idp.tokenRequests.length, 4, 'two for the login and two for the refresh')
  t.is(logins.length, 1)
  t.is(await page.evaluate('ended'), 0)
})

test('when the session is over, all calls lead to one login, and the page opens again', async (t, visit) => {
  const { page, clock, logins, there } = await openPage(t, visit)
  // After ten seconds in which a page was not left, its next call would open the login again.
  await page.clock.setFixedTime(Date.now())
  clock.advanceSeconds(24 * 60 * 60 + 1)
  const opened = page.waitForEvent('load')
  await page.evaluate(`
    for (let index = 0; index < 20; index++) void client.apiFetch('${basePath}/api/hubs')
    void client.getAccessToken(() => {})`)
  await opened
  await shows(page, 'Hello, Ada Lovelace')
  t.is(page.url(), there)
  t.is(logins.length, 2)
})

test('without a network, apiFetch fails like fetch, and getAccessToken waits', async (t, visit) => {
  const { page, context } = await openPage(t, visit)
  await page.clock.install()
  await context.setOffline(true)
  await page.evaluate(`globalThis.token = ${token}; null`)
  t.is(await page.evaluate(`client.apiFetch('${basePath}/api/hubs').catch(error => error.name)`), 'TypeError')
  await context.setOffline(false)
  await page.clock.runFor(60_000)
  t.is(((await page.evaluate('token')) as unknown[]).length, 2)
})

test('a page whose first call is the save keeps what was typed, and saves it after a sign-in in another tab', async (t, visit) => {
  const { page, context, newTab, there, url, logins } = await openPage(t, visit)
  await page.goto(`${url}draft.html`)
  await shows(page, 'Hello, Ada Lovelace')
  await page.locator('textarea').fill('an hour of work')
  await context.clearCookies()
  const save = `client.apiFetch('${basePath}/api/hubs').then(r => r.status, error => error.name)`
  t.is(await page.evaluate(save), 'SignInPreventedError')
  await page.locator('dialog[open]').waitFor()
  await page.reload()
  await shows(page, 'Not signed in')
  t.is(await page.locator('textarea').inputValue(), 'an hour of work')
  const other = await newTab()
  await other.goto(`${new URL(basePath, there)}/api/auth/login`)
  await shows(other, 'Hello, Ada Lovelace')
  t.is(await page.evaluate(save), 200)
  t.is(logins.length, 2)
})

test('Back leads to the page whose button began a sign-in, and not to one that signed in by itself', async (t, visit) => {
  const { page, context, there, url } = await openPage(t, visit)
  const back = async () => {
    await page.goBack()
    // A page that is left while it starts would report an error.
    await shows(page, 'Hello, Ada Lovelace')
    return page.url()
  }
  await page.evaluate(
    'history.replaceState({}, "", "?before"), document.body.onclick = () => client.signIn("/tools/viewer/after")'
  )
  const before = page.url()
  await page.mouse.click(10, 10)
  await page.waitForURL(`${url}after`)
  await shows(page, 'Hello, Ada Lovelace')
  t.is(await back(), before)
  await page.goto(there)
  await context.clearCookies()
  const opened = page.waitForEvent('load')
  void page.evaluate(`client.apiFetch('${basePath}/api/hubs')`).catch(() => {})
  await opened
  await shows(page, 'Hello, Ada Lovelace')
  t.is(await back(), before)
})

test('tabs learn that another user has signed in, and a call learns it before it gets the response', async (t, visit) => {
  const { page, newTab, idp, there } = await openPage(t, visit)
  const other = await newTab()
  await other.goto(there)
  await shows(other, 'Hello, Ada Lovelace')
  const third = await newTab()
  await third.goto(there)
  await shows(third, 'Hello, Ada Lovelace')
  await third.evaluate(`globalThis.told = new Promise(resolve => addEventListener('sessionchanged', resolve)); null`)
  idp.settings.profile = { sub: 'user-2', name: 'Grace Hopper' }
  void other.evaluate('client.signIn()').catch(() => {})
  await shows(other, 'Hello, Grace Hopper')
  t.is(await page.evaluate(`client.apiFetch('${basePath}/api/hubs').then(() => changed)`), 1)
  await third.evaluate('told.then(() => {})')
  t.is(await page.evaluate('ended'), 0)
})

test('a user who stays on the page after signOut() is still signed in, and no tab hears otherwise', async (t, visit) => {
  const { page, newTab, there, url } = await openPage(t, visit)
  const other = await newTab()
  await other.goto(there)
  await shows(other, 'Hello, Ada Lovelace')
  await page.bringToFront()
  await page.mouse.click(10, 10)
  await page.evaluate(`
    globalThis.stay = event => event.preventDefault()
    addEventListener('beforeunload', stay)`)
  page.once('dialog', dialog => void dialog.dismiss())
  const asked = page.waitForEvent('dialog')
  void page.evaluate('client.signOut()').catch(() => {})
  await asked
  t.is(await page.evaluate(`client.apiFetch('${basePath}/api/hubs').then(r => r.status)`), 200)
  const checked = other.waitForResponse(response => response.url().endsWith('/profile'))
  await page.evaluate(`removeEventListener('beforeunload', stay)`)
  await page.goto(`${url}healthz`)
  t.is((await checked).status(), 200)
  t.is(await other.evaluate('client.getProfile().then(() => ended + changed)'), 0)
})

test('the module works in a worker, in a bundle that is no module, and without BroadcastChannel', async (t, visit) => {
  const { page, there, url, context } = await openPage(t, visit)
  const inWorker = `new Promise(resolve => {
    new Worker('${basePath}/worker.js', { type: 'module' }).onmessage = ({ data }) => resolve(data)
  })`
  t.is(await page.evaluate(inWorker), 200)
  await context.clearCookies()
  t.is(await page.evaluate(inWorker), 401)

  // esbuild replaces `import.meta` by an empty object, if the format of the bundle is iife. The bundle expects the routes at the root.
  const bundle = clientModule.text.replaceAll('export ', '').replace('import.meta.url', '({}).url')
  await context.addInitScript('delete globalThis.BroadcastChannel')
  await page.reload()
  await shows(page, 'Not signed in')
  const result = `(() => { ${bundle}; return apiFetch('${basePath}/api/hubs').then(r => r.status) })()`
  const opened = page.waitForRequest(request => request.url().startsWith(new URL('/api/auth/login?', url).href))
  void page.evaluate(result).catch(() => {})
  t.is(
    new URL((await opened).url()).searchParams.get('return_to'),
    new URL(there).pathname + new URL(there).search + new URL(there).hash
  )
})
