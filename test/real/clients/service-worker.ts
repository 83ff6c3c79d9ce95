// A service worker of Workbox: the recipe of docs/pages/bundlers.md, in Chromium.
import type { Page } from 'playwright-core'
import type { Lab, Program } from './lab.js'
import { chooseUser, documented, documentedVersion, filesOf, followRecipe, shows } from './recipes.js'

const files = { 'package.json': '{"type": "module"}', ...filesOf('service-worker') }

export const serviceWorker: Program = {
  name: 'service-worker',
  packages: [documentedVersion('vite'), documentedVersion('vite-plugin-pwa')],
  async run(lab) {
    const config = documented('VitePWA(')
    const page = await controlledPage(lab, config)
    await page.goto('/models')
    await chooseUser(page)
    await shows(page, 'Hello, Ada Lovelace')
    lab.check(
      'with the recipe, a user signs in while the service worker controls the page',
      await page.evaluate('navigator.serviceWorker.controller !== null'),
      true
    )
    lab.check('after the login, the user is back on the page', new URL(page.url()).pathname, '/models')
    const signedOut = page.waitForResponse(response => response.url().endsWith('/api/auth/logout'))
    await page.evaluate("location.assign('/api/auth/logout')")
    lab.check('signing out reaches the server', (await signedOut).status(), 302)

    const without = await controlledPage(lab, config.replace(/, workbox: \{.*?\}/, ''))
    const error = without.waitForEvent('pageerror')
    await without.goto('/models')
    lab.check(
      'without the recipe, the sign-ins that do not help end with an error',
      (await error).name,
      'SignInLoopError'
    )
  }
}

/** Builds the application and opens it. Then a service worker controls its pages, and the session has been lost. */
async function controlledPage(lab: Lab, config: string): Promise<Page> {
  const recipe = await followRecipe(lab, 'node_modules/vite/bin/vite.js', { ...files, 'vite.config.mjs': config })
  await recipe.build()
  const url = await recipe.serve('wwwroot: ./dist\nfallback: index.html\nhashedAssets: assets')
  const page = await lab.newPage(url)
  await page.goto('/api/auth/login')
  await chooseUser(page)
  await shows(page, 'Hello, Ada Lovelace')
  await page.waitForFunction('navigator.serviceWorker.controller !== null')
  await page.context().clearCookies()
  return page
}
