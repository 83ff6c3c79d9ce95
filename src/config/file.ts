import { readdir, readFile, stat } from 'node:fs/promises'
import { join, parse, relative, resolve } from 'node:path'
import type { CosmiconfigResult, PublicExplorer } from 'cosmiconfig'
import type { Problem } from './errors.js'
import { emptyLayer, type Layer, layerOfObject } from './layer.js'
import { createLoaders, whyUnusable } from './loaders.js'

export const fileName = 'platform-auth-server'

const extensions = ['.json', '.yaml', '.yml', '.js', '.mjs', '.cjs']
const rcNames = ['', ...extensions].map(extension => `.${fileName}rc${extension}`)
const configNames = extensions.map(extension => `${fileName}.config${extension}`)

/** The places in the working directory that are searched for settings. The first one that exists is used. */
export const searchPlaces: readonly string[] = [
  'package.json',
  ...[...rcNames, ...configNames].flatMap(name => [name, `config/${name}`, `.config/${name}`]),
  // In .config everything is hidden already, so the dot may be left out there.
  ...rcNames.map(name => `.config/${name.slice(1)}`)
]

export interface FileLayer extends Layer {
  /** The file the settings came from, if there is one. */
  readonly file: string | undefined
  /** False if there is a file that could not be read or parsed. */
  readonly isRead: boolean
}

/**
 * The settings of exactly the file named, or of the one that cosmiconfig finds. Its meta configuration (the key `cosmiconfig`
 * in `.config/config.*`) may add places to search.
 */
export async function layerOfFile(cwd: string, named?: string): Promise<FileLayer> {
  if (named !== undefined) {
    const path = resolve(cwd, named)
    return readSettings(cwd, { path, shown: named, origin: 'flag --config' }, explorer => explorer.load(path))
  }
  const present = await findFiles(cwd)
  const [first] = present
  const expected = first === undefined ? undefined : { path: join(cwd, first), shown: first, origin: `file ${first}` }
  const layer = await readSettings(cwd, expected, explorer => search(explorer, cwd, first))
  const { file } = layer
  const others = file === undefined ? [] : present.filter(place => join(cwd, place) !== file)
  const unread = others.map(other => notRead(other, relative(cwd, file ?? '')))
  return { ...layer, warnings: [...layer.warnings, ...unread, ...(await misnamedFiles(cwd)).map(notLookedFor)] }
}

/** Searches the working directory alone. Rejects if `first`, the first of our files, is there and cannot be used. */
async function search(explorer: PublicExplorer, cwd: string, first: string | undefined) {
  const found = await explorer.search(cwd)
  const place = found === null ? searchPlaces.length : searchPlaces.indexOf(relative(cwd, found.filepath))
  // cosmiconfig passes over a file that it may not read. Loading that file gives the reason.
  if (first === undefined || searchPlaces.indexOf(first) >= place) return found
  return (await explorer.load(join(cwd, first))) ?? found
}

async function createExplorer(): Promise<PublicExplorer> {
  const { cosmiconfig, defaultLoaders } = await import('cosmiconfig')
  return cosmiconfig(fileName, {
    searchPlaces: [...searchPlaces],
    loaders: createLoaders(defaultLoaders['.yaml']),
    searchStrategy: 'none',
    ignoreEmptySearchPlaces: false,
    cache: false
  })
}

const folders = ['', 'config/', '.config/']
const nearlyOurs = new RegExp(`^\\.?${fileName}(rc|\\.config)?\\.(json[c5]?|ya?ml|[mc]?[jt]s|toml|ini)$`)

/** Files whose names resemble those of settings files but are not searched for. */
async function misnamedFiles(cwd: string): Promise<string[]> {
  const lists = await Promise.all(
    folders.map(async folder => {
      const entries = await readdir(join(cwd, folder), { withFileTypes: true }).catch(() => [])
      return entries.filter(entry => entry.isFile()).map(({ name }) => ({ name, place: `${folder}${name}` }))
    })
  )
  return lists
    .flat()
    .filter(({ name, place }) => nearlyOurs.test(name) && !searchPlaces.includes(place))
    .map(({ place }) => place)
}

function notLookedFor(place: string): Problem {
  const { ext } = parse(place)
  const name = `${fileName}.config${extensions.includes(ext) ? ext : '.yaml'}`
  const named = extensions.includes(ext) ? `, or name it by --config ${place}` : ''
  const message = `is not read, because no settings are looked for under this name; call the file ${name}${named}`
  return { key: place, origin: 'working directory', message }
}

function notRead(place: string, found: string): Problem {
  return { key: place, origin: 'working directory', message: `is not read, for ${found} comes first; keep one of them` }
}

/** The search places that exist in a folder, in the order of precedence. */
export async function findFiles(cwd: string): Promise<string[]> {
  const isThere = await Promise.all(
    searchPlaces.map(place => (place === 'package.json' ? isOurPackage(join(cwd, place)) : isFile(join(cwd, place))))
  )
  return searchPlaces.filter((_, index) => isThere[index])
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    found => !found.isDirectory(),
    () => false
  )
}

async function isOurPackage(path: string): Promise<boolean> {
  try {
    return hasOurKey(JSON.parse(await readFile(path, 'utf8')))
  } catch {
    return false
  }
}

interface ExpectedFile {
  readonly path: string
  /** The path as the person knows it. */
  readonly shown: string
  /** Names the file in problems. */
  readonly origin: string
}

async function readSettings(
  cwd: string,
  expected: ExpectedFile | undefined,
  read: (explorer: PublicExplorer) => Promise<CosmiconfigResult>
): Promise<FileLayer> {
  const shownOf = (file: string) => (file === expected?.path ? expected.shown : relative(cwd, file))
  try {
    const found = await read(await createExplorer())
    const file = found?.filepath ?? expected?.path
    if (file === undefined) return { ...emptyLayer, file, isRead: true }
    const inPackage = parse(file).name === 'package' ? `, key ${fileName}` : ''
    return { ...layerOfObject(found?.config ?? {}, `file ${shownOf(file)}${inPackage}`), file, isRead: true }
  } catch (error) {
    // cosmiconfig names the file in its errors, except when it refuses its meta configuration as a whole.
    const file = fileOf(error) ?? expected?.path
    const key = file === undefined ? 'cosmiconfig' : shownOf(file)
    const origin = file !== undefined && file === expected?.path ? expected.origin : `file ${key}`
    return { ...emptyLayer, problems: [{ key, origin, message: whyUnusable(error, file ?? '') }], file, isRead: false }
  }
}

function fileOf(error: unknown): string | undefined {
  return error instanceof Error && 'filepath' in error && typeof error.filepath === 'string'
    ? error.filepath
    : undefined
}

function hasOurKey(manifest: unknown): manifest is { readonly [fileName]: unknown } {
  return typeof manifest === 'object' && manifest !== null && Object.hasOwn(manifest, fileName)
}
