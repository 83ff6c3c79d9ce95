import { resolve } from 'node:path'
import test from 'ava'
import { pageStyle } from '#src/pages/index.js'
import { modes } from '../../helpers/modes.js'
import { startTestServer } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'

for (const mode of modes) {
  test(`the starter page can read that the server runs in ${mode} mode`, async t => {
    const demo = { calls: { refreshToken: 0, reusedRefreshToken: 0 } }
    const { browser } = await startTestServer(t, { mode, overrides: { wwwroot: undefined }, parts: { demo } })
    const about = await browser.get('/starter-about.json')
    const own = { folder: resolve('wwwroot'), hasFolder: false }
    t.deepEqual(about.json(), { product: 'platform-auth-server', mode, demo: true, ...own })
    t.is(about.headers['cache-control'], 'no-cache')
    const style = await browser.get('/starter-base.css')
    t.is(style.text(), pageStyle)
    t.is(style.headers['content-type'], 'text/css; charset=utf-8')
    t.is((await browser.request('HEAD', '/starter-base.css')).statusCode, 200)
    t.is((await browser.request('POST', '/starter-base.css')).statusCode, 405)
  })
}

test('a server whose wwwroot has its own pages does not serve the files about itself', async t => {
  const { browser } = await startTestServer(t)
  for (const path of ['/starter-about.json', '/starter-base.css']) t.is((await browser.get(path)).statusCode, 404)
})

test('a copy of the starter page works, and files in wwwroot take precedence over the generated files', async t => {
  const wwwroot = await tempFolder(t, { 'starter.js': '', 'starter-base.css': 'own' })
  const { browser } = await startTestServer(t, { overrides: { wwwroot } })
  t.is((await browser.get('/starter-base.css')).text(), 'own')
  t.like((await browser.get('/starter-about.json')).json(), { demo: false, folder: wwwroot, hasFolder: true })
})

test('a server that other machines can reach does not tell the path of its folder', async t => {
  const platform = { callbackUrl: 'https://app.example/api/auth/callback' }
  const { browser } = await startTestServer(t, { overrides: { wwwroot: undefined, platform } })
  t.deepEqual((await browser.get('/starter-about.json')).json(), {
    product: 'platform-auth-server',
    mode: 'single',
    demo: false
  })
})
