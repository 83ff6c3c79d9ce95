import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Checked } from './check-value.js'
import { quote } from './quote.js'

/** The packaged starter page, which is served while the operator has no `wwwroot` of their own. */
export const STARTER_PAGE = fileURLToPath(new URL('../../wwwroot', import.meta.url))

/** Makes the folder of static files absolute, and refuses one that is not there. */
export async function checkFolder(given: string, cwd: string): Promise<Checked> {
  const folder = resolve(cwd, given)
  if (await isFolder(folder)) return { value: folder }
  return { refused: `found the text ${quote(given)}, but there is no such folder; allowed: a folder` }
}

/** The folder that is served when none was named. */
export async function ownFolder(cwd: string): Promise<string | undefined> {
  const folder = join(cwd, 'wwwroot')
  return (await isFolder(folder)) ? folder : undefined
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    found => found.isDirectory(),
    () => false
  )
}
