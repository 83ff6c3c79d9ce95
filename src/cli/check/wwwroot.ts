import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config/settings.js'
import { about, type Finding } from './finding.js'

const { ok, warning } = about('wwwroot')

/** Whether those who come back from signing in find a page. */
export async function wwwroot({ wwwroot: folder }: Config): Promise<Finding[]> {
  if (folder === undefined) return [ok('You have none, so the starter page is served.')]
  const page = join(folder, 'index.html')
  try {
    await access(page, constants.R_OK)
    return [ok(`${page} is the start page.`)]
  } catch {
    const message = `There is no ${page} to read: after signing in people get 404 at the start page.`
    return [warning(message, 'Put one there, or set wwwroot to the folder of your pages.')]
  }
}
