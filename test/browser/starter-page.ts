// What tests do with the starter page over and over.
import type { Page } from 'playwright-core'

/** Waits until the page says this. */
export async function status(page: Page, text: string): Promise<void> {
  await page.getByRole('status').filter({ hasText: text }).waitFor()
}

export async function signInAs(page: Page, name: string): Promise<void> {
  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByRole('button', { name }).click()
  await status(page, `You are signed in as ${name}.`)
}
