import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { canonicalName } from './file-patterns.js'
import { publishedFiles, statIfPossible } from './files.js'
import type { PathPattern } from './path-pattern.js'
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

/** False if a folder contains no file that a pattern of `access.files` matches. Compares the names before the first wildcard. */
export async function mayMatchFile({ segments }: Pick<PathPattern, 'segments'>, folder: string): Promise<boolean> {
  const [name, ...rest] = segments
  if (name === undefined || name === '' || name === '*') return true
  const entries = await readdir(folder).catch(() => [])
  const found = entries.find(entry => canonicalName(entry) === name)
  if (found !== undefined) return rest.length === 0 || mayMatchFile({ segments: rest }, join(folder, found))
  const spellings = ['.html', '.gz', '.br'].map(extension => name + extension)
  return rest.length === 0 && entries.some(entry => spellings.includes(canonicalName(entry)))
}
