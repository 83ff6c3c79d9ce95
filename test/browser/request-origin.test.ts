// Chromium sends every kind of request from our own page, from a page of a sibling subdomain, and from a page of another site.
// The results must be those of the table in docs/reference/requests.md.
import test from 'ava'
import type { Page } from 'playwright-core'
import { browserTest, type Visitor } from '../helpers/chromium.js'
import { eventually } from '../helpers/eventually.js'
import { tableRows } from '../helpers/markdown.js'
import { readText } from '../helpers/repository.js'
import { type Origins, PAGE, type RouteName, routes, startOrigins } from './origins.js'

const hosts = {
  'this origin': 'app.example.test',
  'a sibling subdomain': 'evil.example.test',
  'another site': 'page.another.test'
} as const

/** The kinds of requests. Each function runs in the page, and returns when the browser has the response. */
const inPage = {
  '`<iframe>`': `element('iframe', { src: url })`,
  '`<img>`': `element('img', { src: url })`,
  '`<script>`': `element('script', { src: url })`,
  '`fetch` GET': `fetch(url, { credentials: 'include' })`,
  '`fetch` GET, `no-cors`': `fetch(url, { credentials: 'include', mode: 'no-cors' })`,
  '`fetch` HEAD': `fetch(url, { credentials: 'include', method: 'HEAD' })`,
  '`fetch` POST': `fetch(url, { credentials: 'include', method: 'POST', body: 'x' })`,
  '`fetch` POST, `no-cors`': `fetch(url, { credentials: 'include', method: 'POST', body: 'x', mode: 'no-cors' })`,
  '`fetch` PUT': `fetch(url, { credentials: 'include', method: 'PUT', body: 'x' })`,
  '`fetch` PATCH': `fetch(url, { credentials: 'include', method: 'PATCH', body: 'x' })`,
  '`fetch` DELETE': `fetch(url, { credentials: 'include', method: 'DELETE' })`,
  '`EventSource`': `opened(new EventSource(url, { withCredentials: true }))`,
  '`WebSocket`': `opened(new WebSocket(url.replace('https:', 'wss:')))`,
  '`<link rel="prefetch">`': `element('link', { rel: 'prefetch', href: url })`
} as const

const helpersInPage = `
  const settled = (target, events) => new Promise(resolve => events.forEach(name => target.addEventListener(name, resolve)))
  const element = (name, properties) => {
    const created = Object.assign(document.createElement(name), properties)
    const loaded = settled(created, ['load', 'error'])
    document.body.append(created)
    return loaded
  }
  const opened = source => settled(source, ['open', 'error']).finally(() => source.close())`

const form = (method: string) => `
  const form = Object.assign(document.createElement('form'), { method: '${method}', action: url.split('?')[0] })
  if ('${method}' === 'post') form.action = url
  for (const [name, value] of new URL(url).searchParams) {
    form.append(Object.assign(document.createElement('input'), { name, value }))
  }
  document.body.append(form)
  form.submit()`

const navigations = {
  'link, opened in a tab': { page: PAGE, script: 'location.href = url' },
  'form GET': { page: PAGE, script: form('get') },
  'form POST': { page: PAGE, script: form('post') },
  'form POST, `Referrer-Policy: no-referrer`': { page: `${PAGE}?no-referrer`, script: form('post') }
} as const

const BEACON = '`sendBeacon` POST'
const SPECULATION = 'prefetch by speculation rules'

const [header, ...groups] = tableRows(readText('docs/reference/requests.md')).filter(cells => cells.length === 8)

/** A row of the table for each page and request. A row of the document can list several of both. */
const documented = groups.flatMap(([pages = '', requests = '', ...results]) =>
  pages.split('; ').flatMap(page => requests.split('; ').map(request => [page, request, ...results]))
)

for (const [name, host] of Object.entries(hosts)) {
  browserTest(
    `the requests of a page of ${name} have the results that docs/reference/requests.md lists`,
    async (t, visit) => {
      t.timeout(240_000)
      const origins = await startOrigins(t)
      const visitor = await visit({ expectedErrors: /./ })
      const sender = await createSender(visitor, origins, host)
      const rows: string[][] = []
      for (const [request, { page, script }] of Object.entries(navigations)) {
        rows.push([name, request, ...(await sender.rowInTab(url => sender.navigate(page, url, script)))])
      }
      for (const [request, script] of Object.entries(inPage)) {
        rows.push([name, request, ...(await sender.row(url => sender.run(url, script)))])
      }
      rows.push([name, BEACON, ...(await sender.row(sender.beacon))])
      rows.push([name, SPECULATION, ...(await sender.rowInTab(sender.speculate))])
      t.deepEqual(sender.surprises, [])
      // For pages of other origins, the table has only the requests that some route accepts.
      const isListed = (row: readonly string[]) => name === 'this origin' || row.includes('yes')
      t.deepEqual(rows.filter(isListed).sort(), documented.filter(([first]) => first === name).sort())
    }
  )
}

async function createSender({ page, newTab }: Visitor, origins: Origins, host: string) {
  const { originOf, requestWith, reached } = origins
  const surprises: string[] = []
  const app = originOf(hosts['this origin'])
  // The tab of all navigations and prefetches. To open a tab costs Chromium more than to leave a page.
  const tab = await newTab()
  const devTools = await tab.context().newCDPSession(tab)
  await devTools.send('Preload.enable')
  let count = 0
  let isSignedIn = false

  /** Sends a request from the page to each route, and returns the cells of the table. */
  async function row(send: (url: string) => Promise<void>): Promise<string[]> {
    if (!isSignedIn) await signIn()
    const others = (Object.keys(routes) as RouteName[]).filter(route => route !== 'login' && route !== 'logout')
    const results = await Promise.all(others.map(async route => [route, await resultOf(route, send)] as const))
    const { profile, token } = Object.fromEntries(results)
    if (profile !== token) surprises.push(`profile: ${profile}, token: ${token}`)
    return cells(new Map(results), send)
  }

  /** Does the same in the tab, one after another. The rule of the route for the token is that of the profile. */
  async function rowInTab(send: (url: string) => Promise<void>): Promise<string[]> {
    if (!isSignedIn) await signIn()
    const results = new Map<RouteName, string>()
    for (const route of ['profile', ...handlers] as const) results.set(route, await resultOf(route, send))
    return cells(results, send)
  }

  /** Adds the results of the routes that may change the session. Logout comes last, because it may end the session. */
  async function cells(results: Map<RouteName, string>, send: (url: string) => Promise<void>): Promise<string[]> {
    for (const route of ['login', 'logout'] as const) results.set(route, await resultOf(route, send))
    if (results.get('logout') === 'yes') isSignedIn = false
    return columns.map(route => results.get(route) ?? '')
  }

  async function resultOf(route: RouteName, send: (url: string) => Promise<void>): Promise<string> {
    count += 1
    const id = `${route.replace(' ', '-')}-${count}`
    await send(`${app}${routes[route]}?id=${id}`)
    const request = requestWith(id)
    if (request === undefined) return '–'
    const { status, hasSessionCookie } = request
    // SameSite=Lax withholds the cookie only from other sites.
    if (host !== hosts['another site'] && !hasSessionCookie) surprises.push(`${id}: no session cookie`)
    const isRejected = status === 403 || status === 405
    if (handlers.includes(route) && reached(id) === isRejected) surprises.push(`${id}: ${status}`)
    if (!isRejected && ![200, 302].includes(status)) surprises.push(`${id}: ${status}`)
    return isRejected ? 'no' : 'yes'
  }

  async function signIn(): Promise<void> {
    await page.goto(`${app}/api/auth/login?return_to=${PAGE}`)
    await page.goto(originOf(host) + PAGE)
    isSignedIn = true
  }

  async function run(url: string, script: string): Promise<void> {
    await evaluate(page, url, `${helpersInPage}\nreturn Promise.resolve(${script}).catch(() => {}).then(() => {})`)
  }

  async function navigate(path: string, url: string, script: string): Promise<void> {
    await tab.goto(originOf(host) + path)
    const loaded = tab.waitForEvent('load')
    await evaluate(tab, url, script)
    await loaded
  }

  async function beacon(url: string): Promise<void> {
    await evaluate(page, url, `navigator.sendBeacon(url, 'x')`)
    await arrived(url)
  }

  /** Waits until Chromium reports that the prefetch has ended, or why it did not begin. */
  async function speculate(url: string): Promise<void> {
    await tab.goto(originOf(host) + PAGE)
    const ended = new Promise<void>(resolve => {
      devTools.on('Preload.prefetchStatusUpdated', function onUpdate({ prefetchUrl, status }) {
        if (prefetchUrl !== url || !['Ready', 'Success', 'Failure'].includes(status)) return
        devTools.off('Preload.prefetchStatusUpdated', onUpdate)
        resolve()
      })
    })
    const rules = `JSON.stringify({ prefetch: [{ source: 'list', urls: [url], eagerness: 'immediate' }] })`
    await evaluate(
      tab,
      url,
      `document.head.append(Object.assign(document.createElement('script'), { type: 'speculationrules', textContent: ${rules} }))`
    )
    await ended
  }

  function arrived(url: string): Promise<void> {
    return eventually(() => requestWith(new URL(url).searchParams.get('id') ?? '') !== undefined)
  }

  return { row, rowInTab, run, navigate, beacon, speculate, surprises }
}

const columns: readonly RouteName[] = ['login', 'logout', 'profile', 'proxy', 'custom route', 'forward-auth']
const handlers: readonly RouteName[] = ['proxy', 'custom route', 'forward-auth']

function evaluate(page: Page, url: string, script: string): Promise<unknown> {
  return page.evaluate(`(url => { ${script} })(${JSON.stringify(url)})`)
}

test('the table in docs/reference/requests.md has a column for each route and no row that the tests do not send', t => {
  t.is(header?.join(' | '), 'page of | request | login | logout | profile, token | proxy | custom route | forward-auth')
  const kinds = [...Object.keys(navigations), ...Object.keys(inPage), BEACON, SPECULATION]
  const listed = (name: string) => documented.filter(([first]) => first === name).map(([, kind = '']) => kind)
  t.deepEqual(listed('this origin').sort(), kinds.sort())
  for (const name of Object.keys(hosts)) t.true(listed(name).every(kind => kinds.includes(kind)))
})
