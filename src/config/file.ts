import { readFile, stat } from 'node:fs/promises'
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
  if (found === undefined) return { ...emptyLayer, file: undefined, isRead: true }
  const layer = await readSettings(join(cwd, found), found, `file ${found}`)
  return { ...layer, warnings: [...layer.warnings, ...others.map(other => notRead(other, found))] }
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
