// The API proxy in a real browser: the limits of stored content.
import { browserTest as test } from '../helpers/chromium.js'
import { deployWithHostileIdp } from '../helpers/deployment.js'
import { startUpstream } from '../helpers/upstream.js'
import { openSignedIn } from './starter-page.js'

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
  const apiProxy = { rules: [`GET /stored/* ${upstream.origin}/*`] }
  const { page, url } = await openSignedIn(deployWithHostileIdp(t, { settings: { apiProxy } }), visit, {
    expectedErrors: /sandbox|Blocked script|Refused|MIME type|bad HTTP response code \(403\)/i
  })
  const asked: string[] = []
  page.on('request', request => asked.push(new URL(request.url()).pathname))
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
