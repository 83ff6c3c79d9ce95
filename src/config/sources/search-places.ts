import { lstatSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errorCode } from '../../base/error-code.js'
import { isDangling } from '../../base/text-file.js'
import type { SettingsFinding } from './layer.js'

// The places of a settings file, and what cosmiconfig does not tell about them: a place that exists but cannot be read, several
// files, and files whose names are almost right. In each case, an access list could be missing.

export const appName = 'platform-auth-server'

const extensions = ['.json', '.yaml', '.yml', '.js', '.mjs', '.cjs']
const rcNames = ['', ...extensions].map(extension => `.${appName}rc${extension}`)
const configNames = extensions.map(extension => `${appName}.config${extension}`)

/** The places in the working directory that are searched for settings. The first place that has settings is used. */
export const searchPlaces: readonly string[] = [
  'package.json',
  ...[...rcNames, ...configNames].flatMap(name => [name, `config/${name}`, `.config/${name}`]),
  // In the folder .config, the name of a file need not begin with a dot.
  ...rcNames.map(name => `.config/${name.slice(1)}`)
]

/**
 * Returns the search places that exist in a folder, in order of precedence. A folder or a dangling symlink at such a place also
 * counts, because a file with the access list may have been meant to be there.
 * @throws {Error} the error of the system, if this user may not look into `cwd`, `config` or `.config`, or if one of them is a dangling symlink
 */
export function presentPlaces(cwd: string): string[] {
  const present = folders.filter(folder => exists(`${join(cwd, folder)}/.`))
  return searchPlaces.filter(place => present.includes(dirname(place)) && exists(join(cwd, place)))
}

// Every start examines these paths. Asynchronous calls would take several times as long.
function exists(path: string): boolean {
  try {
    lstatSync(path)
    return true
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '') || isDangling(dirname(path))) throw error
    return false
  }
}

const folders = ['.', 'config', '.config']
// Editors of Windows add `.txt` to a name, and its file systems ignore letter case.
const similarName = new RegExp(
  `^(\\.env(\\.txt)?|\\.?${appName}(rc|\\.config)?(\\.(json[c5]?|ya?ml|[mc]?[jt]s|toml|ini)(\\.txt)?|(?<=rc)\\.txt|(?<=rc|config)))$`,
  'i'
)

/** Returns a warning for each file that has a name similar to that of a settings file or `.env`, but is not read. */
export async function misnamedFiles(cwd: string): Promise<SettingsFinding[]> {
  const places = await Promise.all(
    folders.map(async folder => {
      const entries = await readdir(join(cwd, folder), { withFileTypes: true }).catch(() => [])
      // A ConfigMap of Kubernetes consists of symlinks, so an entry that is no file may be one as well.
      return entries
        .filter(entry => !entry.isDirectory() && entry.name !== '.env' && similarName.test(entry.name))
        .map(({ name }) => join(folder, name))
    })
  )
  const misnamed = places.flat().filter(place => !searchPlaces.includes(place))
  return misnamed.map(place => {
    const right = /\.env(\.txt)?$/i.test(place) ? '.env' : `${appName}.config with .yaml, .json, .js, .mjs or .cjs`
    const message = `is not read. Rename it to ${right}, or remove it.`
    return { key: place, source: 'working directory', message, isWarning: true }
  })
}
