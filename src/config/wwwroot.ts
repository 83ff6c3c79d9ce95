import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { errorCode } from '../support/error-code.js'
import type { Checked } from './check-value.js'
import { quote } from './errors.js'
import { whyUnreadable } from './read-file.js'
import type { SettingsFinding } from './rules.js'
import type { Values } from './settings.js'

/** The folder of the packaged starter page. It is served if the operator has no folder of static files. */
export const STARTER_PAGE = fileURLToPath(new URL('../../wwwroot', import.meta.url))

/**
 * Makes the path of the folder of static files absolute. Rejects a folder that does not exist or that this user may not
 * enter.
 */
export async function checkFolder(given: string, cwd: string): Promise<Checked> {
  const folder = resolve(cwd, given)
  const why = await whyUnusable(folder)
  if (why === undefined) return { value: folder }
  return { rejected: [`found the text ${quote(given)}, but ${why}; allowed: a folder`] }
}

/**
 * Returns the folder `wwwroot` of the working directory, or the value undefined if it does not exist. This folder is served
 * if no other folder is configured.
 */
export async function ownFolder(cwd: string): Promise<Checked> {
  const isMissing = (await whyUnusable(join(cwd, 'wwwroot'))) === noSuchFolder
  return isMissing ? { value: undefined } : checkFolder('wwwroot', cwd)
}

/** Checks the settings that name a file or folder inside wwwroot. */
export async function findingsInside({
  wwwroot = STARTER_PAGE,
  fallback,
  hashedAssets = []
}: Values): Promise<SettingsFinding[]> {
  const found: SettingsFinding[] = []
  if (fallback !== undefined && !(await exists(join(wwwroot, fallback), 'isFile'))) {
    const message = `found the text ${quote(fallback)}, but wwwroot has no such file; allowed: a file of wwwroot, such as index.html`
    found.push({ key: 'fallback', message })
  }
  for (const folder of hashedAssets) {
    if (await exists(join(wwwroot, folder), 'isDirectory')) continue
    found.push({
      key: 'hashedAssets',
      isWarning: true,
      message: `lists ${quote(folder)}, but wwwroot has no such folder`
    })
  }
  return found
}

async function exists(path: string, kind: 'isFile' | 'isDirectory'): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined)
  return stats?.[kind]() === true
}

const noSuchFolder = 'there is no such folder'

async function whyUnusable(folder: string): Promise<string | undefined> {
  try {
    // stat(folder) works without permission to enter it; stat(folder/.) does not.
    return (await stat(`${folder}/.`)).isDirectory() ? undefined : noSuchFolder
  } catch (error) {
    const isMissing = ['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')
    return isMissing ? noSuchFolder : `it cannot be read: ${whyUnreadable(error)}`
  }
}
