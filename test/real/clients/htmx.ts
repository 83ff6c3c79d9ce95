// htmx: the recipe of docs/pages/bundlers.md, in Chromium.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startProgram } from '../../helpers/program.js'
import type { Program } from './lab.js'
import { chooseUser, documented, documentedVersion } from './recipes.js'

export const htmx: Program = {
  name: 'htmx',
  packages: [documentedVersion('htmx.org')],
  async run(lab) {
    const cwd = await lab.application({
      'index.html': `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Home</title><link rel="icon" href="data:,">
<script src="/htmx.js"></script>
<script type="module">${documented('htmx:responseError')}</script>
<body hx-boost="true"><h1>Home</h1><input><a id="link" href="/app.html">App</a><button hx-get="/app.html">Load</button>
<dialog><p>Over</p><a target="_blank" href="/api/auth/login?return_to=/app.html" hx-boost="false">Sign in</a><form method="dialog"><button>Close</button></form></dialog>
</body></html>`,
      'app.html': '<!doctype html><html lang="en"><meta charset="utf-8"><title>App</title><h1>App</h1></html>',
      'htmx.js': await readFile(join(lab.folder, 'node_modules/htmx.org/dist/htmx.min.js'), 'utf8')
    })
    const { url } = await startProgram(lab, {
      args: ['--demo', '--mode', 'dual', '--port', '0', '--wwwroot', '.'],
      cwd,
      env: { PLATFORM_AUTH_ACCESS_FILES: '/app.html' }
    })
    const page = await lab.newPage(url)
    await page.goto('/')
    await page.locator('input').fill('an hour of work')
    for (const selector of ['#link', '[hx-get]']) {
      await page.locator(selector).click()
      await page.getByText('Over').waitFor()
      lab.check(`${selector}: the page stays as it is`, await page.locator('input').inputValue(), 'an hour of work')
      await page.getByRole('button', { name: 'Close' }).click()
    }
    await page.locator('#link').click()
    const opened = page.context().waitForEvent('page')
    await page.getByRole('link', { name: 'Sign in' }).click()
    const tab = await opened
    await chooseUser(tab)
    await tab.getByRole('heading', { name: 'App' }).waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
    await page.locator('#link').click()
    await page.getByRole('heading', { name: 'App' }).waitFor()
    lab.check('after the sign-in, the link opens its page', new URL(page.url()).pathname, '/app.html')
  }
}
