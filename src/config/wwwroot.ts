import { join } from 'node:path'
import { publishedFiles, statIfPossible } from './files.js'
import { whyNoFolder } from './paths.js'
import type { Config } from './settings.js'

/**
 * Checks a folder to which `wwwroot` leads since the server has started, as the settings are checked at the start.
 * Returns the reason why its files must not be served, or undefined if they may be served.
 * @param root the real path of the folder
 */
export async function wwwrootProblem(root: string, config: Config): Promise<string | undefined> {
  const { fallback, privateFiles = [] } = config
  const reason = await whyNoFolder(root)
  if (reason !== undefined) return reason
  if (fallback !== undefined && !(await statIfPossible(join(root, fallback)))?.isFile()) {
    return `it has no file ${fallback} (setting fallback)`
  }
  const [published] = await publishedFiles(privateFiles, root)
  return published && `${published.key} ${published.message}`
}
