// Turbo: the recipe of docs/pages/bundlers.md, in Chromium.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { startProgram } from '../../helpers/program.js'
import type { Lab, Program } from './lab.js'
import { chooseUser, documented, documentedVersion, filesOf, shows, statusOf } from './recipes.js'

const page = (content: string) => String(filesOf('turbo')['index.html']).replace('<!-- content -->', content)

export const turbo: Program = {
  name: 'turbo',
  packages: [documentedVersion('@hotwired/turbo')],
  async run(lab) {
    const script = join(lab.folder, 'node_modules/@hotwired/turbo/dist/turbo.es2017-esm.js')
    const link = documented('data-turbo')
    const cwd = await lab.application({
      'index.html': page(link),
      'other.html': page(`<h1>Other</h1>${link}`),
      'turbo.js': await readFile(script, 'utf8')
    })
    const { url } = await startProgram(lab, {
      args: ['--demo', '--mode', 'dual', '--port', '0', '--wwwroot', '.'],
      cwd
    })
    const tab = await lab.newPage(url)
    await tab.goto('/')
    await tab.locator('#sign-in').click()
    await chooseUser(tab)
    await shows(tab, 'Hello, Ada Lovelace')
    await staysSignedIn(lab, tab)
    await tab.locator('#other').click()
    await tab.getByRole('heading', { name: 'Other' }).waitFor()
    lab.check('Turbo opens other pages', new URL(tab.url()).pathname, '/other.html')
    await tab.locator('a[data-turbo=false]').click()
    await shows(tab, 'Nobody is signed in')
    lab.check('the link of the recipe signs out', await statusOf(tab, '/api/auth/profile'), 401)
  }
}

async function staysSignedIn({ check }: Lab, tab: Page): Promise<void> {
  const prefetch = tab.waitForResponse(response => response.url().endsWith('/api/auth/logout'))
  await tab.locator('#plain').hover()
  check('the prefetch of Turbo is rejected', (await prefetch).status(), 403)
  await tab.locator('#plain').click()
  await tab.getByRole('heading').waitFor()
  check('Turbo shows why the link did not sign out', await tab.getByText('403').count(), 1)
  check('the user is still signed in', await statusOf(tab, '/api/auth/profile'), 200)
  await tab.goto('/')
  await shows(tab, 'Hello, Ada Lovelace')
}
