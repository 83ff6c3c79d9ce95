// The API proxy in a real browser: the access of our own pages, and the limits of stored content and other sites.
import type { Page } from 'playwright-core'
import { browserTest as test } from '../helpers/chromium.js'
import { deployWithDemo, deployWithHostileIdp } from '../helpers/deployment.js'
import { startUpstream } from '../helpers/upstream.js'
import { openSignedIn, signInAs, status } from './starter-page.js'

test('the starter page shows the response to an API call through the proxy, or 404 without a rule', async (t, visit) => {
  const { page } = await openSignedIn(deployWithDemo(t, { mode: 'dual' }), visit)
  const answerOf = (page: Page) => page.getByRole('listitem').filter({ has: page.getByLabel('Try api/hubs') })
  await page.getByRole('button', { name: 'Try api/hubs' }).click()
  await answerOf(page).getByText('Bridges').waitFor()

  const without = await deployWithDemo(t, { settings: { apiProxy: { rules: [] } } })
  const { page: other } = await visit()
  await other.goto(without.url)
  await signInAs(other, 'Ada Lovelace')
  await other.getByRole('button', { name: 'Try api/hubs' }).click()
  await answerOf(other).getByText('404', { exact: true }).waitFor()
  t.pass()
})

test('a page without a token can post, read a range and receive server-sent events through the proxy', async (t, visit) => {
  const { page } = await openSignedIn(deployWithDemo(t), visit)
  const result = await page.evaluate(`(async () => {
    const posted = await fetch('api/issues/p1/issues', { method: 'POST', body: JSON.stringify({ title: 'From the page' }) })
    const range = await fetch('api/files/demo.bin', { headers: { Range: 'bytes=0-9' } })
    const events = new EventSource('api/events')
    const event = await new Promise(resolve => {
      events.onmessage = ({ data }) => resolve(data)
    })
    events.close()
    return { posted: posted.status, range: range.status, length: (await range.arrayBuffer()).byteLength, event }
  })()`)
  t.deepEqual(result, { posted: 201, range: 206, length: 10, event: '{"count":1}' })
})

const evilPage = `<!doctype html><title>stored</title><p id="ran">no</p>
<script>document.getElementById('ran').textContent = 'yes'; fetch('/api/auth/profile')</script>`

test('stored content that another user uploaded cannot run or act in our origin', async (t, visit) => {
  const types: Readonly<Record<string, readonly [type: string, content: string]>> = {
    '/page.html': ['text/html', evilPage],
    '/image.svg': ['image/svg+xml', `<svg xmlns="http://www.w3.org/2000/svg"><script>fetch('/ran')</script></svg>`],
    '/script.js': ['text/javascript', `globalThis.stored = true; fetch('/ran')`],
    '/sniffed': ['text/plain', evilPage]
  }
  const upstream = await startUpstream(t, (request, response) => {
    const [type = '', content = ''] = types[request.url ?? ''] ?? []
    response.setHeader('Content-Type', type).setHeader('Service-Worker-Allowed', '/').end(content)
  })
  const { url } = await deployWithHostileIdp(t, {
    settings: { apiProxy: { rules: [`GET /stored/* ${upstream.origin}/*`] } }
  })
  const { page } = await visit({
    expectedErrors: /sandbox|Blocked script|Refused|MIME type|bad HTTP response code \(403\)/i
  })
  const asked: string[] = []
  page.on('request', request => asked.push(new URL(request.url()).pathname))
  await page.goto(url)
  await page.getByRole('link', { name: 'Sign in' }).click()
  await status(page, 'You are signed in')
  const found = await page.evaluate(`(async () => {
    const load = element => new Promise(resolve => {
      element.onload = () => resolve('loaded')
      element.onerror = () => resolve('refused')
      document.body.append(element)
    })
    const script = Object.assign(document.createElement('script'), { src: 'stored/script.js' })
    const style = Object.assign(document.createElement('link'), { rel: 'stylesheet', href: 'stored/script.js' })
    const worker = await navigator.serviceWorker.register('stored/script.js').then(() => 'registered', () => 'refused')
    const read = await fetch('stored/script.js').then(answer => answer.status)
    return { script: await load(script), style: await load(style), worker, read, ran: 'stored' in globalThis }
  })()`)
  t.deepEqual(found, { script: 'refused', style: 'refused', worker: 'refused', read: 200, ran: false })
  asked.length = 0
  for (const name of ['page.html', 'image.svg', 'sniffed']) {
    await page.evaluate(`void (location.href = 'stored/${name}')`)
    await page.waitForURL(`**/stored/${name}`)
    await page.goto(url)
  }
  t.false(asked.includes('/ran'))
  t.deepEqual(asked.filter(path => path.startsWith('/stored/')).length, 3)
})
