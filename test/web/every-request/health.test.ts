// The two paths that load balancers request. That /readyz changes when the server stops is tested in test/server.test.ts.
import test from 'ava'
import { startTestServer } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'

const bodies = { '/healthz': { status: 'ok' }, '/readyz': { status: 'ready', redis: 'off' } }

for (const [path, body] of Object.entries(bodies)) {
  test(`${path} accepts GET and HEAD, also from other sites, and forbids caching`, async t => {
    const { browser } = await startTestServer(t)
    const asked = [
      await browser.get(path),
      await browser.get(`${path}?query`),
      await browser.fetch(path, { from: 'https://elsewhere.example' }),
      await browser.navigate(path)
    ]
    for (const response of asked) {
      t.is(response.statusCode, 200)
      t.deepEqual(response.json(), body)
      t.is(response.headers['content-type'], 'application/json; charset=utf-8')
      t.is(response.headers['cache-control'], 'no-store')
      t.is(response.headers['x-content-type-options'], 'nosniff')
      t.is(response.headers['access-control-allow-origin'], undefined)
    }
    const head = await browser.request('HEAD', path)
    t.deepEqual([head.statusCode, head.body.length], [200, 0])
    t.is(head.headers['content-length'], String(JSON.stringify(body).length))
  })

  test(`${path} takes precedence over a file of that name and matches only its exact path`, async t => {
    const wwwroot = await tempFolder(t, { [path.slice(1)]: 'a file' })
    const { browser } = await startTestServer(t, { settings: { wwwroot } })
    t.deepEqual((await browser.get(path)).json(), body)
    for (const other of [`${path}/`, `${path}/more`, path.toUpperCase(), `/api${path}`]) {
      t.is((await browser.get(other)).statusCode, 404, other)
    }
  })
}
