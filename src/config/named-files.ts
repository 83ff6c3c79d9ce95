import { access, constants, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { PageFilesError, readLogo, readPagesFolder } from '../pages/index.js'
import type { Checked } from './check-value.js'
import { quote } from './errors.js'
import { whyUnreadable } from './read-file.js'

// The checks of the settings whose value is the path of a file or folder that the server reads.

/** Makes the path of a module absolute. Rejects a path that does not lead to a file, or that this user may not read. */
export async function checkModuleFile(given: string, cwd: string): Promise<Checked> {
  const path = resolve(cwd, given)
  try {
    await access(path, constants.R_OK)
    if ((await stat(path)).isFile()) return { value: path }
    return { rejected: [rejection(given, 'it is not a file')] }
  } catch (error) {
    return { rejected: [rejection(given, whyUnreadable(error))] }
  }
}

function rejection(given: string, why: string): string {
  return `found the text ${quote(given)}, but ${why}; allowed: the path of a JavaScript module`
}

/** Makes the path of the logo absolute. Rejects a file that cannot be used as a logo. */
export function checkLogo(given: string, cwd: string): Promise<Checked> {
  return checkFiles(given, cwd, readLogo)
}

/** Makes the path of the folder for the pages absolute. Rejects a folder with a file that cannot be used. */
export function checkPagesFolder(given: string, cwd: string): Promise<Checked> {
  return checkFiles(given, cwd, readPagesFolder)
}

async function checkFiles(given: string, cwd: string, read: (path: string) => unknown): Promise<Checked> {
  const path = resolve(cwd, given)
  try {
    read(path)
    return { value: path }
  } catch (error) {
    if (!(error instanceof PageFilesError)) throw error
    return { rejected: error.problems.map(problem => `found the text ${quote(given)}, but ${problem}`) }
  }
}
