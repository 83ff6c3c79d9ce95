import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Checked } from './check-value.js'
import { quote } from './quote.js'
import { errorCode, whyUnreadable } from './read-file.js'
import type { Finding } from './rules.js'
import type { Values } from './settings.js'

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

/** Findings about the settings that name a file or folder of wwwroot. */
export async function findingsInside({
  wwwroot = STARTER_PAGE,
  fallback,
  hashedAssets = []
}: Values): Promise<Finding[]> {
  const found: Finding[] = []
  if (fallback !== undefined && !(await isThere(join(wwwroot, fallback), 'isFile'))) {
    const message = `found the text ${quote(fallback)}, but wwwroot has no such file; allowed: a file of wwwroot, such as index.html`
    found.push({ key: 'fallback', message })
  }
  for (const folder of hashedAssets) {
    if (await isThere(join(wwwroot, folder), 'isDirectory')) continue
    found.push({
      key: 'hashedAssets',
      isWarning: true,
      message: `names ${quote(folder)}, but wwwroot has no such folder`
    })
  }
  return found
}

async function isThere(path: string, kind: 'isFile' | 'isDirectory'): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined)
  return stats?.[kind]() === true
}

const missing = 'there is no such folder'

async function whyNotUsable(folder: string): Promise<string | undefined> {
  try {
    // stat(folder) works without permission to enter it; stat(folder/.) does not.
    return (await stat(`${folder}/.`)).isDirectory() ? undefined : missing
  } catch (error) {
    const isMissing = ['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')
    return isMissing ? missing : `it cannot be read: ${whyUnreadable(error)}`
  }
}
