// Protected URLs that users open in a tab: links of frameworks, and navigations through a service worker.
import { browserTest as test } from '../helpers/chromium.js'
import { deployWithHostileIdp } from '../helpers/deployment.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { startUpstream } from '../helpers/upstream.js'

const files = {
  'index.html':
    '<!doctype html><title>Start</title><link rel="icon" href="data:,"><a href="/api/auth/logout">Sign out</a>',
  'register.html': `<!doctype html><title>Register</title><link rel="icon" href="data:,">
<script src="register.js"></script>`,
  'register.js': `navigator.serviceWorker.register('service-worker.js' + location.search).then(() => navigator.serviceWorker.ready).then(() => {
  document.title = 'ready'
})`,
  'service-worker.js': `addEventListener('install', () => skipWaiting())
addEventListener('activate', event => event.waitUntil(clients.claim()))
addEventListener('fetch', event => {
  if (event.request.mode !== 'navigate') return
  const { request } = event
  const again = location.search === '?pass-on' ? fetch(request) : fetch(new Request(request, { cache: 'no-store' }))
  event.respondWith(again)
})`
}

async function deploy(t: Parameters<typeof deployWithHostileIdp>[0]) {
  const upstream = await startUpstream(t, (_request, response) =>
    response.setHeader('Content-Type', 'text/plain').end('the report')
  )
  const apiProxy = { rules: [`GET /api/files/** ${upstream.origin}/**`] }
  const settings = { wwwroot: await tempFolder(t, files), apiProxy }
  return deployWithHostileIdp(t, { mode: 'dual', settings })
}

for (const way of ['pass-on', 'new-request']) {
  test(`if a service worker sends every navigation again (${way}), users can open a protected file, sign in and sign out`, async (t, visit) => {
    const { url } = await deploy(t)
    const { page } = await visit()
    await page.goto(`${url}register.html?${way}`)
    await page.waitForFunction(`document.title === 'ready'`)
    await page.goto(`${url}api/files/report.txt`)
    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.getByText('the report').waitFor()
    await page.goto(url)
    await Promise.all([page.waitForEvent('load'), page.getByRole('link', { name: 'Sign out' }).click()])
    t.is((await page.goto(`${url}api/files/report.txt`))?.status(), 401)
  })
}

test('a framework that shows the response of fetch for a login link shows a link that works', async (t, visit) => {
  const { url } = await deploy(t)
  const { page } = await visit()
  await page.goto(url)
  await page.evaluate(`(async () => {
    const path = '/api/auth/login?return_to=/api/files/report.txt'
    const response = await fetch(path, { headers: { Accept: 'text/html, application/xhtml+xml' } })
    history.pushState(null, '', path)
    document.body.innerHTML = new DOMParser().parseFromString(await response.text(), 'text/html').body.innerHTML
  })()`)
  await page.getByRole('heading', { name: 'A script cannot open this page' }).waitFor()
  await page.getByRole('link', { name: 'Try again' }).click()
  await page.getByText('the report').waitFor()
  t.pass()
})
