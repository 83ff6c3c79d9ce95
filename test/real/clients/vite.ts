// Vite: the recipe of docs/pages/bundlers.md with the demo, in Chromium.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { Lab, Program } from './lab.js'
import { documented, documentedVersion, filesOf, followRecipe, shows, signInAt, statusOf } from './recipes.js'

const script = 'node_modules/vite/bin/vite.js'

const files: Readonly<Record<string, string>> = { 'package.json': '{"type": "module"}', ...filesOf('vite') }

export const vite: Program = {
  name: 'vite',
  packages: [documentedVersion('vite')],
  async run(lab) {
    const recipe = await followRecipe(lab, script, { ...files, 'vite.config.mjs': documented('strictPort') })
    const site = await recipe.develop([])
    const page = await lab.newPage()
    await signInAt(lab, page, `${site}/models?id=7`, 'after the login, the user is back on the page of Vite')
    await keepsItsSession(lab, page)
    await reloads(lab, page, recipe.folder)
    lab.check('a rule of the API proxy works', await statusOf(page, '/api/hubs'), 200)
    await rejectsOtherSites(lab, site)
    await signsOut(lab, page, site)

    await recipe.build()
    const url = await recipe.serve('wwwroot: ./dist\nfallback: index.html\nhashedAssets: assets')
    await signInAt(lab, page, `${url}/models?id=7`, 'the built pages work at this server', 'Good morning')
    const address = await page.locator('script[type=module]').getAttribute('src')
    const { headers } = await fetch(new URL(address ?? '', url))
    lab.check('browsers may cache the built files', headers.get('cache-control')?.includes('immutable'), true)
  }
}

async function keepsItsSession({ check }: Lab, page: Page): Promise<void> {
  const cookies = (await page.context().cookies()).filter(({ name }) => name === 'platform_session')
  check(
    'the session cookie belongs to localhost, and scripts cannot read it',
    cookies.map(({ domain, httpOnly, secure }) => ({ domain, httpOnly, secure })),
    [{ domain: 'localhost', httpOnly: true, secure: false }]
  )
  check('document.cookie is empty', await page.evaluate('document.cookie'), '')
}

async function reloads({ check }: Lab, page: Page, folder: string): Promise<void> {
  const marker = 'window.marker ?? "reloaded"'
  await page.evaluate('window.marker = "the same document"')
  await writeFile(join(folder, 'src/greeting.js'), "export const greeting = 'Good morning'\n")
  await shows(page, 'Good morning, Ada Lovelace')
  check('hot reload replaces a module without a reload of the page', await page.evaluate(marker), 'the same document')
  check('the session is valid after hot reload', await statusOf(page, '/api/auth/profile'), 200)

  await writeFile(join(folder, 'index.html'), String(files['index.html']).replace(/<p (.*)p>/, '<h1 $1h1>'))
  await page.locator('h1').filter({ hasText: 'Good morning, Ada Lovelace' }).waitFor()
  check('a change of index.html reloads the page', await page.evaluate(marker), 'reloaded')
}

async function rejectsOtherSites({ check }: Lab, site: string): Promise<void> {
  const of = async (headers: Record<string, string>) => (await fetch(`${site}/api/auth/profile`, { headers })).status
  check('a request of another site gets 403', await of({ origin: 'https://other.example' }), 403)
  check('a request of the page itself is not rejected', await of({ origin: site }), 401)
}

async function signsOut({ check }: Lab, page: Page, site: string): Promise<void> {
  const context = page.context()
  const response = await context.request.get(`${site}/api/auth/logout`, { maxRedirects: 0 })
  check('signing out leads to the start page of Vite', [response.status(), response.headers().location], [302, '/'])
  const names = (await context.cookies(site)).map(({ name }) => name)
  check('after signing out, the session cookie is gone', names.includes('platform_session'), false)
}
