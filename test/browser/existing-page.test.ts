// Pages that were written for the server of the Autodesk Platform Services (APS) tutorial must run unchanged. They use plain
// fetches, `location.replace`, a module script, and a viewer that is loaded from a host of APS. The viewer gets its token
// from a JavaScript function of the page. In these tests, another origin on loopback stands for the host of APS.
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { ExecutionContext } from 'ava'
import type { Page } from 'playwright-core'
import { browserTest as test } from '../helpers/chromium.js'
import type { Clock } from '../helpers/clock.js'
import { deployWithDemo } from '../helpers/deployment.js'
import { modes } from '../helpers/modes.js'
import { listen } from '../helpers/ports.js'
import { readText } from '../helpers/repository.js'
import { tempFolder } from '../helpers/temp-folder.js'

const pageOf = (platform: string, mode: 'single' | 'dual') => `<!doctype html>
<html>
<head>
  <meta charset="utf-8">
  <title>Models</title>
  <link rel="icon" href="${platform}/icon.svg">
  <link rel="stylesheet" href="${platform}/viewer.css">
  <link rel="stylesheet" href="/main.css">
  <script src="${platform}/viewer.js"></script>
</head>
<body>
  <button id="login">Login</button>
  <div id="preview" style="width: 100px; height: 100px"></div>
  <img id="thumbnail" src="${platform}/icon.svg" alt="">
  <script src="/main.js" type="module" data-mode="${mode}"></script>
</body>
</html>`

const mainScript = (
  mode: 'single' | 'dual'
) => `${mode === 'dual' ? "import { initViewer } from './viewer-of-this-page.js'" : ''}
const login = document.querySelector('#login')
try {
  const resp = await fetch('/api/auth/profile')
  if (resp.ok) {
    const user = await resp.json()
    login.innerText = 'Logout (' + user.name + ')'
    login.onclick = () => window.location.replace('/api/auth/logout')
    ${mode === 'dual' ? "await initViewer(document.getElementById('preview'))" : ''}
  } else {
    login.innerText = 'Login'
    login.onclick = () => window.location.replace('/api/auth/login')
  }
  login.dataset.ready = 'yes'
} catch (err) {
  alert('Could not initialize the application. See console for more details.')
  console.error(err)
}
`

const viewerOfThisPage = `
async function getAccessToken(callback) {
  try {
    const resp = await fetch('/api/auth/token')
    if (!resp.ok) throw new Error(await resp.text())
    const { access_token, expires_in } = await resp.json()
    callback(access_token, expires_in)
  } catch (err) {
    alert('Could not obtain access token. See the console for more details.')
    console.error(err)
  }
}
export function initViewer(container) {
  return new Promise(resolve => {
    Autodesk.Viewing.Initializer({ env: 'AutodeskProduction', getAccessToken }, () => {
      new Autodesk.Viewing.GuiViewer3D(container).start().then(resolve)
    })
  })
}
`

// A stand-in for the Autodesk viewer. It uses the same features: a function of the page that passes it a token, a worker from
// a blob, inline styles, a font, a data URL, and requests to its own host with the token.
const viewerScript = `
const host = new URL(document.currentScript.src).origin
const Viewing = {
  tokens: [],
  Initializer({ getAccessToken }, done) {
    const ask = then => getAccessToken((token, seconds) => {
      this.tokens.push(token)
      setTimeout(() => ask(() => {}), Math.max(seconds, 0.5) * 1000)
      then()
    })
    ask(done)
  },
  Document: {
    load(urn, done) {
      done({ getRoot: () => ({ getDefaultGeometry: () => urn }) })
    }
  },
  GuiViewer3D: class {
    constructor(container) { this.container = container }
    async start() {
      const worker = new Worker(URL.createObjectURL(new Blob(['postMessage(eval("6 * 7"))'])))
      const fromWorker = await new Promise(resolve => { worker.onmessage = event => resolve(event.data) })
      const token = Viewing.tokens.at(-1)
      const model = await fetch(host + '/model', { headers: { Authorization: 'Bearer ' + token } }).then(r => r.text())
      const style = document.createElement('style')
      style.textContent = '@font-face { font-family: V; src: url(' + host + '/font.woff2) }'
      document.head.append(style)
      this.container.innerHTML = '<canvas style="width: 100%"></canvas><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">'
      this.container.title = model + ' ' + fromWorker
    }
    loadDocumentNode(document, geometry) { this.container.dataset.shown = geometry }
    finish() { this.container.replaceChildren() }
  }
}
globalThis.Autodesk = { Viewing }
`

for (const mode of modes) {
  test(`a page written for the server of the APS tutorial runs unchanged in ${mode} mode`, async (t, visit) => {
    const platform = await startPlatformHost(t)
    const wwwroot = await tempFolder(t, {
      'index.html': pageOf(platform.url, mode),
      'main.js': mainScript(mode),
      'main.css': '#login { color: rgb(1, 2, 3) }',
      'viewer-of-this-page.js': viewerOfThisPage
    })
    const { url, clock } = await deployWithDemo(t, { mode, settings: { wwwroot } })
    const { page } = await visit()
    await page.clock.install()
    const dialogs: string[] = []
    page.on('dialog', dialog => {
      dialogs.push(dialog.message())
      return dialog.dismiss()
    })
    await page.goto(url)
    await page.getByRole('button', { name: /^Login$/ }).click()
    await page.getByRole('button', { name: 'Zaha Hadid' }).click()
    await page.getByRole('button', { name: 'Logout (Zaha Hadid)' }).waitFor()
    t.is(page.url(), url)
    await page.locator('#login[data-ready]').waitFor()
    t.is(await page.evaluate('getComputedStyle(document.querySelector("#login")).color'), 'rgb(1, 2, 3)')
    t.is(await page.evaluate('getComputedStyle(document.body).accentColor'), 'rgb(4, 5, 6)')
    t.true(Number(await page.evaluate('document.querySelector("#thumbnail").naturalWidth')) > 0)

    if (mode === 'dual') {
      t.is(await page.locator('#preview').getAttribute('title'), 'a model 42')
      // The viewer asks for another token when the first one expires, and gets a new one.
      await expireToken(page, clock)
      await page.waitForFunction('new Set(Autodesk.Viewing.tokens).size >= 2')
      const tokens = (await page.evaluate('Autodesk.Viewing.tokens')) as string[]
      t.is(platform.authorizations[0], `Bearer ${tokens[0]}`)
    }

    await page.getByRole('button', { name: 'Logout (Zaha Hadid)' }).click()
    await page.getByRole('button', { name: /^Login$/ }).waitFor()
    t.is(page.url(), url)
    t.deepEqual(dialogs, [])
  })
}

test('the examples in your-pages.html work if they are copied into a folder of pages', async (t, visit) => {
  const { page, newTab } = await visit()
  const starter = await deployWithDemo(t)
  await page.goto(`${starter.url}your-pages.html`)
  const [example = '', tokenExample = ''] = await page.locator('pre').allTextContents()

  const wwwroot = await tempFolder(t, { 'index.html': example })
  const { url } = await deployWithDemo(t, { mode: 'dual', settings: { wwwroot } })
  const own = await newTab()
  await own.goto(url)
  await own.getByRole('button', { name: 'Sign in' }).click()
  await own.getByRole('button', { name: 'Ada Lovelace' }).click()
  await own.getByText('Hello, Ada Lovelace').waitFor()
  await own.evaluate(`
    globalThis.start = () => {}
    globalThis.Autodesk = { Viewing: { Initializer: ({ getAccessToken }, done) => { globalThis.viewer = { getAccessToken, done } } } }`)
  await own.addScriptTag({ type: 'module', content: tokenExample })
  const [token, seconds] = (await own.evaluate(
    'new Promise(resolve => viewer.getAccessToken((...given) => resolve(given)))'
  )) as [string, number]
  t.regex(token, /^ey/)
  t.true(seconds > 3500)
})

test('the viewer of the example gets tokens, and closes after a sign-out in another tab', async (t, visit) => {
  const platform = await startPlatformHost(t)
  const example = readText('examples/viewer/wwwroot/index.html')
    .replace(/https:.*style\.min\.css/, `${platform.url}/viewer.css`)
    .replace(/https:.*viewer3D\.min\.js/, `${platform.url}/viewer.js`)
  const wwwroot = await tempFolder(t, { 'index.html': example })
  const { url, clock } = await deployWithDemo(t, { mode: 'dual', settings: { wwwroot } })
  const { page, newTab } = await visit()
  await page.clock.install()
  await page.goto(`${url}?urn=dXJuOmFiYw`)
  await page.getByRole('button', { name: 'Ada Lovelace' }).click()
  await page.getByText('Hello, Ada Lovelace').waitFor()
  t.is(page.url(), `${url}?urn=dXJuOmFiYw`)
  await page.locator('#viewer[data-shown="urn:dXJuOmFiYw"][title="a model 42"]').waitFor()
  await expireToken(page, clock)
  await page.waitForFunction('new Set(Autodesk.Viewing.tokens).size >= 2')
  const tokens = (await page.evaluate('Autodesk.Viewing.tokens')) as string[]
  t.is(platform.authorizations[0], `Bearer ${tokens[0]}`)

  const other = await newTab()
  await other.goto(url)
  await other.getByRole('button', { name: 'Sign out' }).click()
  await page.getByText('Your session has ended.').waitFor()
  t.is(await page.locator('#viewer > *').count(), 0)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Demo sign-in' }).waitFor()
})

/** The token lives for an hour. The viewer's timer ends when both the server and the page have reached its expiry. */
async function expireToken(page: Page, clock: Clock): Promise<void> {
  clock.advanceSeconds(3600)
  await page.clock.fastForward('01:00:00')
}

async function startPlatformHost(t: Pick<ExecutionContext, 'teardown'>) {
  const authorizations: string[] = []
  const files: Readonly<Record<string, readonly [type: string, body: string]>> = {
    '/viewer.js': ['text/javascript', viewerScript],
    '/viewer.css': ['text/css', 'body { accent-color: rgb(4, 5, 6) }'],
    '/icon.svg': ['image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>'],
    '/font.woff2': ['font/woff2', ''],
    '/model': ['text/plain', 'a model']
  }
  const server = createServer((request, response) => {
    const { authorization }: IncomingHttpHeaders = request.headers
    if (authorization) authorizations.push(authorization)
    const [type, body] = files[request.url ?? ''] ?? ['text/plain', '']
    response.writeHead(request.method === 'OPTIONS' ? 204 : 200, {
      'content-type': type,
      'access-control-allow-origin': '*',
      'access-control-allow-headers': 'authorization'
    })
    response.end(body)
  })
  return { url: `http://127.0.0.1:${await listen(t, server)}`, authorizations }
}
