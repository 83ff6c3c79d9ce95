import { resolve } from 'node:path'
import test from 'ava'
import { modes } from '../../helpers/modes.js'
import { startTestServer } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'

for (const mode of modes) {
  test(`the starter page can read that the server runs in ${mode} mode`, async t => {
    const demo = { calls: { refreshToken: 0, reusedRefreshToken: 0 } }
    const { browser } = await startTestServer(t, { mode, settings: { wwwroot: undefined }, parts: { demo } })
    const about = await browser.get('/starter-about.json')
    const own = { folder: resolve('wwwroot'), hasFolder: false }
    t.deepEqual(about.json(), { product: 'platform-auth-server', mode, demo: true, hasSession: false, ...own })
    t.is(about.headers['cache-control'], 'no-store')
    t.is((await browser.request('HEAD', '/starter-about.json')).statusCode, 200)
    t.is((await browser.request('POST', '/starter-about.json')).statusCode, 405)
  })
}

test('browsers ask for the files of the starter page before each use', async t => {
  const { browser } = await startTestServer(t, { settings: { wwwroot: undefined } })
  for (const path of ['/', '/starter.js']) {
    const { statusCode, headers } = await browser.get(path)
    t.is(statusCode, 200)
    t.like(headers, { 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' })
    t.is((await browser.request('POST', path)).statusCode, 405)
  }
})

test('a server whose wwwroot has its own pages serves the files of the starter page only if it has a copy, whose files take precedence', async t => {
  const { browser } = await startTestServer(t)
  for (const path of ['/starter-about.json', '/starter-base.css']) t.is((await browser.get(path)).statusCode, 404)
  const wwwroot = await tempFolder(t, { 'starter.js': '' })
  const { browser: copied } = await startTestServer(t, { settings: { wwwroot } })
  t.like((await copied.get('/starter-about.json')).json(), { demo: false, folder: wwwroot, hasFolder: true })
})

test('a request that names another host does not get the description of the server', async t => {
  const { browser } = await startTestServer(t, { settings: { wwwroot: undefined } })
  for (const host of ['192.168.1.7:8080', 'evil.example:8080', 'evil.localhost:8080', 'localhost.evil.example']) {
    const response = await browser.get('/starter-about.json', { headers: { host } })
    t.is(response.statusCode, 404, host)
    t.false(response.text().includes(resolve('wwwroot')), host)
  }
  t.is((await browser.get('/starter-about.json', { headers: { host: '127.0.0.1:8080' } })).statusCode, 200)
})

test('a server that other machines can reach does not tell the path of its folder', async t => {
  const platform = { callbackUrl: 'https://app.example/api/auth/callback' }
  const { browser } = await startTestServer(t, { settings: { wwwroot: undefined, platform } })
  t.deepEqual((await browser.get('/starter-about.json')).json(), {
    product: 'platform-auth-server',
    hasSession: false,
    mode: 'single',
    demo: false
  })
})
