// Several tabs of one browser begin a login at the same time, as a browser does that restores its tabs.
import { browserTest as test } from '../helpers/chromium.js'
import { deployWithHostileIdp } from '../helpers/deployment.js'
import { createHeldLogins } from '../helpers/held-logins.js'
import { tempFolder } from '../helpers/temp-folder.js'

// `npm run test:browsers` repeats this 20 times.
const runs = Number(process.argv[2] ?? 1)
const indexes = [0, 1, 2, 3, 4]

for (const scope of ['openid', 'data:read']) {
  test(`five tabs that begin a login at the same time, without a login cookie, all reach their pages (${scope})`, async (t, visit) => {
    const { mayPass, restart } = createHeldLogins(indexes.length)
    const wwwroot = await tempFolder(t, { 'page.html': '<!doctype html><link rel="icon" href="data:,">' })
    const settings = { wwwroot, access: { files: ['/page.html'] }, platform: { scopes: [scope] } }
    const { url, logs, idp } = await deployWithHostileIdp(t, { settings, mayPass })
    for (let run = 0; run < runs; run++) {
      restart()
      const { context, page, newTab } = await visit()
      const tabs = await Promise.all(indexes.map(index => (index === 0 ? page : newTab())))
      const opened = await Promise.all(
        tabs.map(async (tab, index) => {
          const response = await tab.goto(`${url}api/auth/login?return_to=/page.html%3Ftab=${index}`)
          return [response?.status(), tab.url()]
        })
      )
      const expected = indexes.map(index => [200, `${url}page.html?tab=${index}`])
      t.deepEqual(opened, expected)
      t.is((await page.goto(`${url}api/auth/profile`))?.status(), 200)
      await context.close()
    }
    t.deepEqual(logs.all('login_failed'), [])
    t.log(`${logs.all('login_restarted').length} logins began once more`)
    t.deepEqual(idp.reuses, [])
  })
}
