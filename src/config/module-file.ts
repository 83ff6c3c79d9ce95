import { access, constants, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Checked } from './check-value.js'
import { quote } from './quote.js'
import { whyUnreadable } from './read-file.js'

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
