// Steps on the starter page that many tests share.
import type { Page } from 'playwright-core'

/** Waits until the status line of the page contains this text. */
export async function status(page: Page, text: string): Promise<void> {
  await page.getByRole('status').filter({ hasText: text }).waitFor()
}

export async function signInAs(page: Page, name: string): Promise<void> {
  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByRole('button', { name }).click()
  await status(page, `You are signed in as ${name}.`)
}
