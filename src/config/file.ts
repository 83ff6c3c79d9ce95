import { readdir, readFile } from 'node:fs/promises'
import { join, parse, relative, resolve } from 'node:path'
import { type CosmiconfigResult, cosmiconfig, defaultLoaders, type PublicExplorer } from 'cosmiconfig'
import type { Problem } from './errors.js'
import { statIfPossible, whyUnreadable } from './files.js'
import { createLoaders, isMissingModule, isPackage, unsupportedFormat, whyUnusable } from './loaders.js'
import { emptyLayer, type Layer, layerOfObject } from './sources.js'

export const fileName = 'platform-auth-server'

const extensions = ['.json', '.yaml', '.yml', '.js', '.mjs', '.cjs']
const rcNames = ['', ...extensions].map(extension => `.${fileName}rc${extension}`)
const configNames = extensions.map(extension => `${fileName}.config${extension}`)

/** The places in the working directory that are searched for settings. The first place that exists is used. */
export const searchPlaces: readonly string[] = [
  'package.json',
  ...[...rcNames, ...configNames].flatMap(name => [name, `config/${name}`, `.config/${name}`]),
  // In the folder .config, the name of a file need not begin with a dot.
  ...rcNames.map(name => `.config/${name.slice(1)}`)
]

export interface FileLayer extends Layer {
  /** The absolute path of the settings file, if there is one. */
  readonly file: string | undefined
  /** The absolute paths of all files that were read, which are the settings file and the files that it imports. */
  readonly files: readonly string[]
  /** False if a file exists but could not be read or parsed. */
  readonly isRead: boolean
}

/**
 * Reads the settings file whose path is `named`. Without `named`, reads the file that cosmiconfig finds. The meta configuration
 * of cosmiconfig (the key `cosmiconfig` in `.config/config.*`) may add search places.
 */
export async function layerOfFile(cwd: string, named?: string): Promise<FileLayer> {
  if (named !== undefined) {
    const path = resolve(cwd, named)
    return readSettings(cwd, { path, shown: named, source: 'flag --config' }, explorer => explorer.load(path))
  }
  const present = await findFiles(cwd)
  const [first] = present
  const expected = first === undefined ? undefined : { path: join(cwd, first), shown: first, source: `file ${first}` }
  const layer = await readSettings(cwd, expected, explorer => search(explorer, cwd, first))
  const { file } = layer
  const others = file === undefined ? [] : present.filter(place => join(cwd, place) !== file)
  const unused = others.map(other => shadowed(other, relative(cwd, file ?? '')))
  return { ...layer, warnings: [...layer.warnings, ...unused, ...(await misnamedFiles(cwd)).map(misnamed)] }
}

/** Searches only the working directory. Rejects if `first`, the first search place that exists, is unusable. */
async function search(explorer: PublicExplorer, cwd: string, first: string | undefined) {
  const found = await explorer.search(cwd)
  const place = found === null ? searchPlaces.length : searchPlaces.indexOf(relative(cwd, found.filepath))
  // cosmiconfig has skipped `first`, because this user may not read it. Loading the file throws an error with the
  // reason.
  if (first === undefined || searchPlaces.indexOf(first) >= place) return found
  return (await explorer.load(join(cwd, first))) ?? found
}

function createExplorer(onLoad: (path: string) => void): PublicExplorer {
  return cosmiconfig(fileName, {
    searchPlaces: [...searchPlaces],
    loaders: createLoaders(defaultLoaders['.yaml'], onLoad),
    searchStrategy: 'none',
    ignoreEmptySearchPlaces: false,
    cache: false
  })
}

const folders = ['', 'config/', '.config/']
const similarName = new RegExp(`^\\.?${fileName}(rc|\\.config)?\\.(json[c5]?|ya?ml|[mc]?[jt]s|toml|ini)$`)

/** Returns the files that have a name similar to that of a settings file, but are not among the search places. */
async function misnamedFiles(cwd: string): Promise<string[]> {
  const places = await Promise.all(
    folders.map(async folder => {
      const entries = await readdir(join(cwd, folder), { withFileTypes: true }).catch(() => [])
      return entries.filter(entry => entry.isFile() && similarName.test(entry.name)).map(({ name }) => folder + name)
    })
  )
  return places.flat().filter(place => !searchPlaces.includes(place))
}

function misnamed(place: string): Problem {
  const { ext } = parse(place)
  const base = `${fileName}.config`
  const why =
    unsupportedFormat(ext, base) ??
    `it does not have the name of a settings file. Rename it to ${base}${ext}, or name it with --config ${place}.`
  return { key: place, source: 'working directory', message: `is not read, because ${why}` }
}

function shadowed(place: string, found: string): Problem {
  const message = `is not read, because ${found} has precedence. Remove one of the two.`
  return { key: place, source: 'working directory', message }
}

/** Returns the search places that exist in a folder, in order of precedence. */
export async function findFiles(cwd: string): Promise<string[]> {
  const isThere = await Promise.all(
    searchPlaces.map(place => (place === 'package.json' ? isOurPackage(join(cwd, place)) : isFile(join(cwd, place))))
  )
  return searchPlaces.filter((_, index) => isThere[index])
}

async function isFile(path: string): Promise<boolean> {
  return (await statIfPossible(path))?.isDirectory() === false
}

async function isOurPackage(path: string): Promise<boolean> {
  try {
    return Object.hasOwn(JSON.parse(await readFile(path, 'utf8')), fileName)
  } catch {
    return false
  }
}

interface ExpectedFile {
  readonly path: string
  /** The path as the operator wrote it, or relative to the working directory. */
  readonly shown: string
  /** The `source` of every `Problem` that is found in this file. */
  readonly source: string
}

async function readSettings(
  cwd: string,
  expected: ExpectedFile | undefined,
  read: (explorer: PublicExplorer) => Promise<CosmiconfigResult>
): Promise<FileLayer> {
  const shownOf = (file: string) => (file === expected?.path ? expected.shown : relative(cwd, file))
  const loaded: string[] = []
  // cosmiconfig also reads a package.json that does not contain our key, so such a file does not count.
  const filesRead = (file: string) => [...new Set([file, ...loaded.filter(path => !isPackage(path))])]
  try {
    const found = await read(createExplorer(path => loaded.push(path)))
    const file = found?.filepath ?? expected?.path
    if (file === undefined) return { ...emptyLayer, file, files: [], isRead: true }
    const inPackage = isPackage(file) ? `, key ${fileName}` : ''
    const layer = layerOfObject(found?.config ?? {}, `file ${shownOf(file)}${inPackage}`)
    return { ...layer, file, files: filesRead(file), isRead: true }
  } catch (error) {
    // If a module that a settings script imports is missing, the loaders throw a different error. So this missing
    // module belongs to this package, and the settings are not the cause.
    if (isMissingModule(error)) throw error
    // cosmiconfig looks for its meta configuration in the working directory of the process.
    if (error instanceof Error && 'path' in error && error.path === process.cwd()) {
      const message = `cannot be read, because ${whyUnreadable(error)}. Start the server in a folder to which this user has access.`
      const problems = [{ key: 'working directory', source: error.path, message }]
      return { ...emptyLayer, problems, file: undefined, files: [], isRead: false }
    }
    // The errors of cosmiconfig contain the path of the file, except the error about an invalid meta configuration.
    const file = fileOf(error) ?? expected?.path
    const key = file === undefined ? 'cosmiconfig' : shownOf(file)
    const source = file !== undefined && file === expected?.path ? expected.source : `file ${key}`
    const problems = [{ key, source, message: whyUnusable(error, file ?? '') }]
    return { ...emptyLayer, problems, file, files: file === undefined ? [] : filesRead(file), isRead: false }
  }
}

function fileOf(error: unknown): string | undefined {
  return error instanceof Error && 'filepath' in error && typeof error.filepath === 'string'
    ? error.filepath
    : undefined
}
