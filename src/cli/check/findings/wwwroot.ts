import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../../config/settings.js'
import { type Finding, findingsFor } from '../finding.js'

const { ok, warning } = findingsFor('wwwroot')

/** Checks that there is a start page for people who have signed in. */
export async function wwwroot({ wwwroot: folder }: Config): Promise<Finding[]> {
  if (folder === undefined) return [ok('No folder is set, so the built-in starter page is served.')]
  const page = join(folder, 'index.html')
  try {
    await access(page, constants.R_OK)
    return [ok(`${page} is the start page.`)]
  } catch {
    const message = `${page} cannot be read, so people get a 404 response after signing in.`
    return [warning(message, 'Create this file, or set wwwroot to the folder of your pages.')]
  }
}
