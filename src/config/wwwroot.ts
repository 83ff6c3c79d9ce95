import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { statIfPossible } from '../base/text-file.js'
import { publishedFiles } from './private-files.js'
import type { Config } from './settings.js'
import { whyNoFolder } from './types/existing-path.js'
import { canonicalName, type FilePattern } from './types/protected-files.js'

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

/**
 * Returns the reason why a pattern of `access.files` matches no file of a folder, or undefined if it may match one. Compares the names
 * before the first wildcard. A pattern of public files for a folder alone, without its slash or a final `/**`, matches none of its files.
 */
export async function whyNoFile({ path, isPublic, text }: FilePattern, folder: string): Promise<string | undefined> {
  let parent = folder
  for (const [index, name] of path.segments.entries()) {
    if (name === '' || name === '*') return undefined
    const isLast = index === path.segments.length - 1
    const entries = await readdir(parent).catch(() => [])
    const has = (wanted: string) => entries.find(entry => canonicalName(entry, isPublic) === wanted)
    if (isLast && ['.html', '.gz', '.br'].some(extension => has(name + extension) !== undefined)) return undefined
    const found = has(name)
    if (found === undefined) return `wwwroot has no such file or folder.${isPublic ? ' Letter case matters.' : ''}`
    parent = join(parent, found)
  }
  const isFolder = isPublic && !path.hasRest && (await statIfPossible(parent))?.isDirectory()
  return isFolder ? `this is a folder, and the pattern matches none of its files. Use ${text}/**.` : undefined
}
