import systemPath, { join, type PlatformPath } from 'node:path'
import type { Context } from 'koa'
import { invalidRequest } from '../errors/http-error.js'
import { closeFile, isWellKnown, type OpenedFile, openInside } from './open-inside.js'

export interface FoundFile {
  readonly file: OpenedFile
  /** The path below the root, as the URL spells it, with `/` as separator. */
  readonly path: string
  /** True if the URL is that of a folder without the slash at its end, and the file is the folder's `index.html`. */
  readonly isIndexOfFolder: boolean
  /** The value of `Content-Encoding`, if the file is a compressed variant of the file for the URL. */
  readonly encoding: 'br' | 'gzip' | undefined
}

const INDEX = 'index.html'
const VARIANTS = [
  { encoding: 'br', extension: '.br' },
  { encoding: 'gzip', extension: '.gz' }
] as const

/**
 * Creates a function that finds and opens the file for the URL of a request. If a path has no file, the file with the extension
 * `.html` is used, because static site generators write `about.html` for `/about`. A folder comes last. The caller must close the
 * file.
 * @param root the real path of a folder
 */
export function fileFinder(root: string) {
  const open = openInside(root)

  return async function findFile(ctx: Context): Promise<FoundFile | undefined> {
    const path = pathBelowRoot(ctx.path)
    if (path === undefined) return undefined
    if (ctx.path.endsWith('/')) return find(ctx, path + INDEX)
    let isFolder = false
    const onFolder = () => {
      isFolder = true
    }
    const found = (await find(ctx, path, onFolder)) ?? (await find(ctx, `${path}.html`))
    if (found || !isFolder) return found
    const index = await open(join(root, path, INDEX))
    return index && { file: index, path: `${path}/${INDEX}`, isIndexOfFolder: true, encoding: undefined }
  }

  async function find(ctx: Context, path: string, onFolder?: () => void): Promise<FoundFile | undefined> {
    const file = await open(join(root, path), onFolder)
    if (!file) return undefined
    try {
      const variant = await findVariant(ctx, path)
      if (variant) closeFile(file.fd)
      return variant ?? { file, path, isIndexOfFolder: false, encoding: undefined }
    } catch (error) {
      closeFile(file.fd)
      throw error
    }
  }

  async function findVariant(ctx: Context, path: string): Promise<FoundFile | undefined> {
    for (const { encoding, extension } of VARIANTS) {
      if (ctx.acceptsEncodings(encoding, 'identity') !== encoding) continue
      const file = await open(join(root, path + extension))
      if (file) return { file, path: path + extension, isIndexOfFolder: false, encoding }
    }
    return undefined
  }
}

// Operating systems open no longer path (PATH_MAX), and `normalize` takes quadratic time.
const MAX_PATH_LENGTH = 4096

/**
 * Decodes the path of a URL. Returns undefined if it is too long, if it leads out of the root, or if one of its names is hidden.
 * @param systemPath how the operating system writes paths; for tests
 * @throws HttpError 400 if the path cannot be decoded
 */
export function pathBelowRoot(
  urlPath: string,
  { normalize, sep }: Pick<PlatformPath, 'normalize' | 'sep'> = systemPath
) {
  const path = decoded(urlPath)
  if (path.length > MAX_PATH_LENGTH) return undefined
  const below = normalize(`.${path}`).replaceAll(sep, '/')
  if (below === './') return ''
  const names = below.split('/')
  if (names.some((name, depth) => name.startsWith('.') && !isWellKnown(name, depth))) return undefined
  // On Windows, such names lead to streams, devices and files with another name.
  return sep === '\\' && names.some(name => /[:*?"<>|]|[. ]$/.test(name)) ? undefined : below
}

function decoded(urlPath: string): string {
  try {
    const path = decodeURIComponent(urlPath)
    if (!path.includes('\0')) return path
  } catch {}
  throw invalidRequest('The URL of this request is malformed.')
}
