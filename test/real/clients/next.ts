// Next.js: the recipes of docs/pages/bundlers.md with the demo, in Chromium. One exports static pages, the other keeps the server of
// Next.js.
import type { Page } from 'playwright-core'
import type { Lab, Program } from './lab.js'
import { documented, documentedVersion, filesOf, followRecipe, signInAt, statusOf } from './recipes.js'

const script = 'node_modules/next/dist/bin/next'

const files = { 'package.json': '{"type": "module"}', ...filesOf('next') }

export const next: Program = {
  name: 'next',
  packages: [documentedVersion('next'), 'react@19.3.1', 'react-dom@19.3.1'],
  async run(lab) {
    await exportsPages(lab)
    await keepsTheServer(lab)
  }
}

async function exportsPages(lab: Lab): Promise<void> {
  const recipe = await followRecipe(lab, script, { ...files, 'next.config.mjs': documented('PHASE_DEVELOPMENT') })
  const site = await recipe.develop(['dev', '--port', recipe.port])
  const page = await lab.newPage()
  await signInAt(lab, page, `${site}/?id=7`, 'export, development: after the login, the user is back on the page')
  lab.check('export, development: a rule of the API proxy works', await statusOf(page, '/api/hubs'), 200)

  await recipe.build()
  const url = await recipe.serve('wwwroot: ./out')
  await worksInProduction(lab, 'export', page, url)
  const { status } = await fetch(`${url}/about`)
  lab.check('export: the server finds about.html', status, 200)
}

async function keepsTheServer(lab: Lab): Promise<void> {
  const recipe = await followRecipe(lab, script, { ...files, 'next.config.mjs': documented('async rewrites') })
  await recipe.build()
  const site = await recipe.develop(['start', '--port', recipe.port])
  await worksInProduction(lab, 'server of Next.js', await lab.newPage(), site)
}

async function worksInProduction(lab: Lab, name: string, page: Page, site: string): Promise<void> {
  const { check } = lab
  // An export requests other files for its prefetches than the server of Next.js.
  const prefetch = page.waitForResponse(response => response.url().includes('/api/auth/logout'))
  await signInAt(lab, page, `${site}/?id=7`, `${name}: after the login, the user is back on the page`)
  check(`${name}: the prefetch of the link that signs out has no effect`, (await prefetch).status() >= 400, true)
  check(`${name}: the user is still signed in`, await statusOf(page, '/api/auth/profile'), 200)

  await page.evaluate('window.marker = "the same document"')
  await page.getByRole('link', { name: 'About' }).click()
  await page.getByRole('heading', { name: 'About us' }).waitFor()
  check(
    `${name}: Next.js opens another page without a reload`,
    await page.evaluate('window.marker'),
    'the same document'
  )

  const signedOut = page.waitForResponse(
    response => response.url().includes('/api/auth/logout') && response.status() === 302
  )
  await page.getByRole('link', { name: 'Sign out' }).click()
  await signedOut
  await page.getByRole('button', { name: 'Ada Lovelace' }).waitFor()
  // The start page has opened the sign-in page of the provider.
  const profile = await page.context().request.get(`${site}/api/auth/profile`)
  check(`${name}: the link signs the user out`, profile.status(), 401)
}
