import { resolve } from 'node:path'
import { PageFilesError, readLogo, readPagesFolder } from '../pages/index.js'
import type { Checked } from './check-value.js'
import { quote } from './quote.js'

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
