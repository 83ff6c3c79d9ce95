import { lstat, readdir, readFile } from 'node:fs/promises'
import { join, parse, resolve } from 'node:path'
import { errorCode } from '../base/error-code.js'
import type { ConfigProblem } from './errors.js'
import { readTextFile, statIfPossible, whyUnreadable } from './files.js'
import { isPackage, parseSettings, unsupportedFormat, whyUnusable } from './loaders.js'
import { emptyLayer, type Layer, layerOfObject } from './sources.js'

export const fileName = 'platform-auth-server'

const extensions = ['.json', '.yaml', '.yml', '.js', '.mjs', '.cjs']
const rcNames = ['', ...extensions].map(extension => `.${fileName}rc${extension}`)
const configNames = extensions.map(extension => `${fileName}.config${extension}`)

/**
 * The places in the working directory that are searched for settings. The first place that exists is used. All of these names
 * belong to this server. The function `cosmiconfig()` is not used, because it also runs `.config/config.*`, which may belong to
 * a different application.
 */
export const searchPlaces: readonly string[] = [
  'package.json',
  ...[...rcNames, ...configNames].flatMap(name => [name, `config/${name}`, `.config/${name}`]),
  // In the folder .config, the name of a file need not begin with a dot.
  ...rcNames.map(name => `.config/${name.slice(1)}`)
]

export interface FileLayer extends Layer {
  /** The absolute path of the settings file, if there is one. */
  readonly file: string | undefined
  /** False if a file exists but could not be read or parsed. */
  readonly isRead: boolean
}

/** Reads the settings file whose path is `named`. Without `named`, reads the first search place that exists. */
export async function layerOfFile(cwd: string, named?: string): Promise<FileLayer> {
  if (named !== undefined) return readSettings({ path: resolve(cwd, named), shown: named, source: 'flag --config' })
  let present: string[]
  try {
    present = await findFiles(cwd)
  } catch (error) {
    return unreadFolder(cwd, error)
  }
  const warnings = (await misnamedFiles(cwd)).map(misnamed)
  const [first, ...others] = present
  if (first === undefined) return { ...emptyLayer, warnings, file: undefined, isRead: true }
  const layer = await readSettings({ path: join(cwd, first), shown: first, source: `file ${first}` })
  return { ...layer, warnings: [...layer.warnings, ...others.map(other => shadowed(other, first)), ...warnings] }
}

const folders = ['', 'config/', '.config/']
const similarName = new RegExp(`^\\.?${fileName}(rc|\\.config)?\\.(json[c5]?|ya?ml|[mc]?[jt]s|toml|ini)$`)

/** Returns the files that have a name similar to that of a settings file, but are not among the search places. */
async function misnamedFiles(cwd: string): Promise<string[]> {
  const places = await Promise.all(
    folders.map(async folder => {
      const entries = await readdir(join(cwd, folder), { withFileTypes: true }).catch(() => [])
      // A ConfigMap of Kubernetes consists of symlinks, so an entry that is no file may be one as well.
      return entries
        .filter(entry => !entry.isDirectory() && similarName.test(entry.name))
        .map(({ name }) => folder + name)
    })
  )
  return places.flat().filter(place => !searchPlaces.includes(place))
}

function misnamed(place: string): ConfigProblem {
  const { ext } = parse(place)
  const base = `${fileName}.config`
  const why =
    unsupportedFormat(ext, base) ??
    `it does not have the name of a settings file. Rename it to ${base}${ext}, or name it with --config ${place}.`
  return { key: place, source: 'working directory', message: `is not read, because ${why}` }
}

function shadowed(place: string, found: string): ConfigProblem {
  const message = `is not read, because ${found} has precedence. Remove one of the two.`
  return { key: place, source: 'working directory', message }
}

/**
 * Returns the search places that exist in a folder, in order of precedence. A folder or a dangling symlink at such a place also
 * counts, because a file with the access list may have been meant to be there.
 * @throws {Error} the error of the system, if this user may not look into `cwd`, `config` or `.config`
 */
export async function findFiles(cwd: string): Promise<string[]> {
  const isThere = await Promise.all(
    searchPlaces.map(place => (place === 'package.json' ? isOurPackage(join(cwd, place)) : exists(join(cwd, place))))
  )
  return searchPlaces.filter((_, index) => isThere[index])
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')) return false
    throw error
  }
}

async function isOurPackage(path: string): Promise<boolean> {
  try {
    return Object.hasOwn(JSON.parse(await readFile(path, 'utf8')), fileName)
  } catch {
    return false
  }
}

/** A folder that cannot be searched is a problem, because a file in it may contain the access list. */
function unreadFolder(cwd: string, error: unknown): FileLayer {
  const { path = cwd } = error as NodeJS.ErrnoException
  const message = `cannot be searched for a settings file, because ${whyUnreadable(error)}. Give this user access to the folder, start the server in a different folder, or name the settings file with --config.`
  return {
    ...emptyLayer,
    problems: [{ key: parse(path).dir, source: 'folder', message }],
    file: undefined,
    isRead: false
  }
}

interface ExpectedFile {
  readonly path: string
  /** The path as the operator wrote it, or relative to the working directory. */
  readonly shown: string
  /** The `source` of every `ConfigProblem` that concerns the whole file. */
  readonly source: string
}

async function readSettings({ path, shown, source }: ExpectedFile): Promise<FileLayer> {
  const unread = (message: string) => ({
    ...emptyLayer,
    problems: [{ key: shown, source, message }],
    file: path,
    isRead: false
  })
  try {
    const text = await readTextFile(path)
    if (text.trim() === '') return unread('is empty. Write settings into it, or remove it.')
    const content = await parseSettings(path, text)
    const inPackage = isPackage(path) ? `, key ${fileName}` : ''
    const layer = layerOfObject(content ?? {}, `file ${shown}${inPackage}`)
    const nothing = { key: shown, source, message: 'contains only comments, so it sets nothing.' }
    return { ...layer, warnings: content === undefined ? [nothing] : layer.warnings, file: path, isRead: true }
  } catch (error) {
    const isDangling =
      (await exists(path)) && (await statIfPossible(path)) === undefined && errorCode(error) === 'ENOENT'
    if (isDangling) return unread('cannot be read, because it is a symlink to a file that does not exist.')
    return unread(whyUnusable(error, path))
  }
}
