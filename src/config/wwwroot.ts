import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Checked } from './check-value.js'
import { quote } from './quote.js'
import { errorCode, whyUnreadable } from './read-file.js'

/** The packaged starter page, which is served while the operator has no `wwwroot` of their own. */
export const STARTER_PAGE = fileURLToPath(new URL('../../wwwroot', import.meta.url))

/** Makes the folder of static files absolute, and refuses one that is not there or that this user may not enter. */
export async function checkFolder(given: string, cwd: string): Promise<Checked> {
  const folder = resolve(cwd, given)
  const why = await whyNotUsable(folder)
  if (why === undefined) return { value: folder }
  return { refused: `found the text ${quote(given)}, but ${why}; allowed: a folder` }
}

/** The folder that is served when none was named, if it is there. */
export async function ownFolder(cwd: string): Promise<Checked> {
  const isMissing = (await whyNotUsable(join(cwd, 'wwwroot'))) === missing
  return isMissing ? { value: undefined } : checkFolder('wwwroot', cwd)
}

const missing = 'there is no such folder'

async function whyNotUsable(folder: string): Promise<string | undefined> {
  try {
    // The folder itself can be looked at without the right to enter it; what is in it, be it the folder again, cannot.
    return (await stat(`${folder}/.`)).isDirectory() ? undefined : missing
  } catch (error) {
    const isMissing = ['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')
    return isMissing ? missing : `it cannot be read: ${whyUnreadable(error)}`
  }
}
