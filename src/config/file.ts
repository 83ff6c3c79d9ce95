import { readdir, readFile, stat } from 'node:fs/promises'
import { join, parse, resolve } from 'node:path'
import type { Problem } from './errors.js'
import { emptyLayer, type Layer, layerOfObject } from './layer.js'
import { loadFile, whyUnusable } from './loaders.js'

export const fileName = 'platform-auth-server'

const extensions = ['.json', '.yaml', '.yml', '.js', '.mjs', '.cjs']
const rcNames = ['', ...extensions].map(extension => `.${fileName}rc${extension}`)
const configNames = extensions.map(extension => `${fileName}.config${extension}`)

/**
 * Where settings are looked for, in this order, in the working directory and nowhere else; the first that is there
 * counts.
 */
export const searchPlaces: readonly string[] = [
  'package.json',
  ...[...rcNames, ...configNames].flatMap(name => [name, `config/${name}`, `.config/${name}`]),
  // In .config everything is hidden already, so the dot may be left out there.
  ...rcNames.map(name => `.config/${name.slice(1)}`)
]

export interface FileLayer extends Layer {
  /** The file the settings came from, if there is one. */
  readonly file: string | undefined
  /** False when there is a file but nobody knows what it says. */
  readonly isRead: boolean
}

/** The settings of exactly the file named, or of the first one found. */
export async function layerOfFile(cwd: string, named?: string): Promise<FileLayer> {
  if (named !== undefined) return readSettings(resolve(cwd, named), named, 'flag --config')
  const [found, ...others] = await findFiles(cwd)
  const misnamed = (await misnamedFiles(cwd)).map(notLookedFor)
  if (found === undefined) return { ...emptyLayer, warnings: misnamed, file: undefined, isRead: true }
  const layer = await readSettings(join(cwd, found), found, `file ${found}`)
  return { ...layer, warnings: [...layer.warnings, ...others.map(other => notRead(other, found)), ...misnamed] }
}

const folders = ['', 'config/', '.config/']
const nearlyOurs = new RegExp(`^\\.?${fileName}(rc|\\.config)?\\.(json[c5]?|ya?ml|[mc]?[jt]s|toml|ini)$`)

/** Files that look as if they were meant for us and are in none of the search places. */
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

/** The places in a folder that hold settings, the one that counts first. */
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

async function readSettings(path: string, shown: string, origin: string): Promise<FileLayer> {
  try {
    const content = await loadFile(path)
    const isPackage = parse(path).name === 'package'
    const settings = isPackage ? ourPartOf(content) : content
    const inPackage = isPackage ? `, key ${fileName}` : ''
    return { ...layerOfObject(settings ?? {}, `file ${shown}${inPackage}`), file: path, isRead: true }
  } catch (error) {
    const problem = { key: shown, origin, message: whyUnusable(error, path) }
    return { ...emptyLayer, problems: [problem], file: path, isRead: false }
  }
}

function ourPartOf(manifest: unknown): unknown {
  return hasOurKey(manifest) ? manifest[fileName] : undefined
}

function hasOurKey(manifest: unknown): manifest is { readonly [fileName]: unknown } {
  return typeof manifest === 'object' && manifest !== null && Object.hasOwn(manifest, fileName)
}
