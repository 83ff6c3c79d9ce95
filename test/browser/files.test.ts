// Static files in a real browser: pages behind a login with what they load, a folder, and what the browser shows after a logout.
import { browserTest as test } from '../helpers/chromium.js'
import { deployWithDemo } from '../helpers/deployment.js'
import { tempFolder } from '../helpers/temp-folder.js'

const page = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Report</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="page.css">
<h1>Secret figures</h1><img src="chart.svg" alt="A chart">
<script type="module" src="page.js"></script></html>`

const script = `const { total } = await (await fetch('data.json')).json()
document.body.append('Total: ' + total)`

test('a user opens the URL of a protected folder, signs in, and gets the page with everything that it loads, but not after the logout', async (t, visit) => {
  const wwwroot = await tempFolder(t, {
    'index.html': '<!doctype html><title>Welcome</title><link rel="icon" href="data:,"><h1>Welcome</h1>',
    'reports/index.html': page,
    'reports/page.css': 'h1 { color: rgb(1, 2, 3) }',
    'reports/page.js': script,
    'reports/data.json': '{"total":42}',
    'reports/chart.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>'
  })
  const { url } = await deployWithDemo(t, { settings: { wwwroot, access: { files: ['/reports/**'] } } })
  const { page: tab } = await visit()
  t.is((await tab.goto(`${url}reports?x=1`))?.status(), 401)
  await tab.getByRole('link', { name: /sign in/i }).click()
  await tab.getByRole('button', { name: 'Ada Lovelace' }).click()
  await tab.getByText('Total: 42').waitFor()
  t.is(tab.url(), `${url}reports/?x=1`)
  t.is(await tab.evaluate(`getComputedStyle(document.querySelector('h1')).color`), 'rgb(1, 2, 3)')
  t.is(await tab.evaluate(`document.querySelector('img').naturalWidth`), 8)

  await tab.goto(`${url}api/auth/logout`)
  await tab.getByText('Welcome').waitFor()
  await tab.goBack()
  await tab.getByRole('link', { name: /sign in/i }).waitFor()
  t.is(await tab.getByText('Secret figures').count(), 0)
  await tab.goto(url)
  t.is(await tab.evaluate(`fetch('/reports/data.json').then(response => response.status)`), 401)
})
