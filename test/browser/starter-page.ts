// Steps on the starter page that many tests share.
import type { Page } from 'playwright-core'
import type { Visit } from '../helpers/chromium.js'

/** Waits until the status line of the page contains this text. */
export async function status(page: Page, text: string): Promise<void> {
  await page.getByRole('status').filter({ hasText: text }).waitFor()
}

export async function signInAs(page: Page, name: string): Promise<void> {
  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByRole('button', { name }).click()
  await status(page, `You are signed in as ${name}.`)
}

/** Opens a URL of a deployment, by default its start page, with a new browser. */
export async function open<Deployment extends { readonly url: string }>(
  deploying: Promise<Deployment>,
  visit: Visit,
  options?: Parameters<Visit>[0],
  path = ''
) {
  const deployment = await deploying
  const visitor = await visit(options)
  await visitor.page.goto(`${deployment.url}${path}`)
  return { ...deployment, ...visitor }
}

/** Signs Ada Lovelace in with a new browser. */
export async function openSignedIn<Deployment extends { readonly url: string }>(
  deploying: Promise<Deployment>,
  visit: Visit,
  options?: Parameters<Visit>[0]
) {
  const opened = await open(deploying, visit, options, 'api/auth/login')
  // Only the demo asks who signs in.
  if ('demo' in opened) await opened.page.getByRole('button', { name: 'Ada Lovelace' }).click()
  await status(opened.page, 'You are signed in as Ada Lovelace.')
  return opened
}
