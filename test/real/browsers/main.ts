// Runs what depends on the browser in Firefox and WebKitGTK, and prints what each of them did. `npm test` does it in Chromium.
// `--help` lists the options.
import { deployWithHostileIdp } from '../../helpers/deployment.js'
import { eventually } from '../../helpers/eventually.js'
import { createHeldLogins } from '../../helpers/held-logins.js'
import type { Teardown } from '../../helpers/scope.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { startUpstream } from '../../helpers/upstream.js'
import { isInstalled } from '../programs.js'
import { number, type Play, type Report, runSuite } from '../suite.js'
import { BROWSERS, type Browser, startBrowser } from './driver.js'

const head = '<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,">'
const files = {
  'app.html': `${head}<h1>Secret</h1>`,
  'form.html': `${head}<form method="post" action="/api/save"><textarea name="text"></textarea><button>Save</button></form>`,
  'member.html': `${head}<a href="/api/auth/logout?return_to=/form.html">Sign out</a><p></p><script type="module">
import { getProfile } from '/api/auth/client.js'
const show = text => { document.querySelector('p').textContent = text }
addEventListener('pageshow', ({ persisted }) => { document.title = persisted ? 'from the cache' : 'loaded' })
addEventListener('sessionended', () => show('No session any more'))
show((await getProfile())?.name ?? 'No session')
</script>`
}

const pdf = `%PDF-1.4
1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj
2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F <</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>> endobj
4 0 obj <</Length 44>> stream
BT /F 40 Tf 20 100 Td (A document) Tj ET    
endstream endobj
trailer <</Root 1 0 R>>`

const indexes = [0, 1, 2, 3, 4]
type Deployment = Awaited<ReturnType<typeof deploy>>
type Step = (browser: Browser, deployment: Deployment, report: Report, runs: number) => Promise<void>

/** Each step begins in one tab, without a session. */
const steps: Readonly<Record<string, Step>> = {
  async 'a bookmark with a fragment'(b, deployment, { check }) {
    const bookmark = `${deployment.url}app.html?a=1#/projects/5`
    await b.open(bookmark)
    await b.sees('You are not signed in')
    await b.click('a.button')
    await b.sees('Secret')
    check('after the sign-in, the URL is the same', (await b.url()) === bookmark, await b.url())
  },

  async 'a form that is sent without a session'(b, { url }, { check }) {
    await b.open(`${url}form.html?id=7`)
    await b.type('textarea', 'an hour of work')
    await b.click('button')
    await b.sees('Nothing was saved')
    await b.back()
    await b.until('document.forms.length === 1')
    const text = String(await b.run('document.querySelector("textarea").value'))
    check('Back shows what was typed', text === 'an hour of work', text)
    await b.click('button')
    await b.sees('Nothing was saved')
    await b.click('a.button')
    await eventually(async () => (await b.tabs()).length === 2)
    await b.sees('Nothing was saved')
    check('the sign-in has its own tab', true)
  },

  async 'a PDF of an API in a tab'(b, { url }, { check }) {
    await b.open(`${url}api/auth/login?return_to=/api/file.pdf`)
    await b.until('location.pathname === "/api/file.pdf"')
    // WebKitGTK shows the PDF in a frame, and Firefox in the page.
    await b.until('document.querySelector("iframe, .textLayer") !== null')
    const width = await b.run('(document.querySelector("iframe") ?? document.body).offsetWidth / innerWidth')
    if (await b.run('frames.length > 0')) await b.send('showFrame', { id: 0 })
    await b.sees('A document')
    check('it fills the tab', Number(width) > 0.9, String(width))
  },

  async 'Back after a logout'(b, { url }, { check }) {
    await b.open(`${url}api/auth/login?return_to=/member.html`)
    await b.sees('Ada Lovelace')
    await b.click('a')
    await b.sees('Save')
    await b.back()
    await b.sees('No session')
    check(`the page shows no name (it was ${await b.run('document.title')})`, true)
  },

  async 'five tabs that begin a login at the same time'(b, { url, restart, logs, idp }, { check, note }, runs) {
    for (const _ of indexes.slice(1)) await b.newTab()
    const tabs = await b.tabs()
    let complete = 0
    for (let round = 0; round < runs; round++) {
      for (const tab of tabs) {
        await b.show(tab)
        await b.open(`${url}healthz?${round}`)
        await b.until(`location.search === '?${round}' && document.readyState === 'complete'`)
      }
      await b.send('clearCookies')
      restart()
      for (const [index, tab] of tabs.entries()) {
        await b.show(tab)
        // Firefox does not return from `open` before the server has responded.
        await b.leaveFor(`${url}api/auth/login?return_to=/api/pages/${index}`)
      }
      for (const [index, tab] of tabs.entries()) {
        await b.show(tab)
        await b.until('/saved|Error/.test(document.body.innerText)')
        const opened = [await b.run('location.pathname'), await b.run('document.body.innerText')]
        if (opened.join() === `/api/pages/${index},saved`) complete++
        else note(opened.join(' '))
      }
    }
    check(`${complete} of ${runs * tabs.length} reached their pages`, complete === runs * tabs.length)
    check('no code was sent twice', idp.reuses.length === 0)
    note(`${logs.all('login_restarted').length} logins began once more`)
  }
}

async function deploy(t: Teardown) {
  const upstream = await startUpstream(t, (request, response) => {
    if (request.url === '/file.pdf') response.setHeader('Content-Type', 'application/pdf').end(pdf)
    else response.setHeader('Content-Type', 'text/plain').end('saved')
  })
  const { mayPass, restart } = createHeldLogins(indexes.length)
  const settings = {
    wwwroot: await tempFolder(t, files),
    access: { files: ['/app.html'] },
    apiProxy: { rules: [`GET,POST /api/** ${upstream.origin}/**`] }
  }
  return { ...(await deployWithHostileIdp(t, { settings, mayPass })), restart }
}

function playOf(name: keyof typeof BROWSERS, runs: number): Play {
  return async (report, scope) => {
    const [program] = BROWSERS[name]
    report.title(name)
    if (!isInstalled(program)) {
      report.note(`SKIPPED, because ${program} is not installed.`)
      if (process.env.CI === 'true') report.check('the browser can run here', false)
      return
    }
    const browser = await startBrowser(scope, name)
    const deployment = await deploy(scope)
    report.note(browser.version)
    for (const [title, step] of Object.entries(steps)) {
      report.note(title)
      const [first, ...others] = await browser.tabs()
      for (const tab of others) {
        await browser.show(tab)
        await browser.send('closeTab')
      }
      await browser.show(first)
      await browser.open(`${deployment.url}healthz`)
      await browser.sees('ok')
      await browser.send('clearCookies')
      await step(browser, deployment, report, runs)
    }
  }
}

await runSuite({
  script: 'test:browsers',
  names: Object.keys(BROWSERS),
  options: { runs: { usual: '20', help: 'how often five tabs begin a login at the same time (default 20)' } },
  remark: 'Without firefox-esr, or webkit2gtk-driver and xvfb, that browser is skipped. With CI=true that is an error.',
  plays: (only, { runs }) => only.map(name => playOf(name as keyof typeof BROWSERS, number(runs)))
})
