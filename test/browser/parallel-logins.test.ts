// Several tabs of one browser begin a login at the same time, as a browser does that restores its tabs.
import { setTimeout } from 'node:timers/promises'
import { browserTest as test } from '../helpers/chromium.js'
import { createDeferred } from '../helpers/deferred.js'
import { deployWithHostileIdp } from '../helpers/deployment.js'
import { startUpstream } from '../helpers/upstream.js'

const TABS = 5
const LATENCY_MS = 150
// `npm run test:browsers` repeats this more often.
const runs = Number(process.env.RUNS ?? 1)

/** Holds requests back until `count` of them have arrived, and lets all later ones through. */
function createGate(count: number) {
  const [opened, open] = createDeferred()
  let arrived = 0
  return () => {
    if (++arrived === count) open()
    return opened
  }
}

for (const scope of ['openid', 'data:read']) {
  test(`five tabs that begin a login at the same time, without a login cookie, all reach their pages (${scope})`, async (t, visit) => {
    const upstream = await startUpstream(t, (_request, response) => {
      response.setHeader('content-type', 'text/plain').end('A page')
    })
    let gates: Readonly<Record<string, () => Promise<unknown>>> = {}
    const { url, logs, idp } = await deployWithHostileIdp(t, {
      settings: { apiProxy: { rules: [`GET /api/pages/** ${upstream.origin}/**`] }, platform: { scopes: [scope] } },
      async mayPass(path) {
        await gates[path.split('?', 1)[0] ?? '']?.()
        await setTimeout(Math.random() * LATENCY_MS)
      }
    })
    for (let run = 0; run < runs; run++) {
      // No response of a login arrives before the last login began, and no callback before all logins have set their cookie.
      gates = { '/api/auth/login': createGate(TABS), '/api/auth/callback': createGate(TABS) }
      const { context, page } = await visit()
      const tabs = [page, ...(await Promise.all(Array.from({ length: TABS - 1 }, () => context.newPage())))]
      const opened = await Promise.all(
        tabs.map(async (tab, index) => {
          const path = `/api/pages/${index}?run=${run}`
          const response = await tab.goto(`${url}api/auth/login?return_to=${encodeURIComponent(path)}`)
          return [response?.status(), tab.url()]
        })
      )
      t.deepEqual(
        opened,
        tabs.map((_, index) => [200, `${url}api/pages/${index}?run=${run}`])
      )
      t.is((await page.goto(`${url}api/auth/profile`))?.status(), 200)
      await context.close()
    }
    t.deepEqual(logs.all('login_failed'), [])
    t.log(`${logs.all('login_restarted').length} logins began once more`)
    t.deepEqual(idp.reuses, [])
  })
}
