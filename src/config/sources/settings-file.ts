import { createRequire } from 'node:module'
import os from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { packageFolder } from '../../base/package.js'
import { readTextFile, whyUnreadableAt } from '../../base/text-file.js'
import type { ConfigProblem } from '../types/problem.js'
import type { Row } from '../types/setting.js'
import { emptyLayer, type Layer } from './layer.js'
import { layerOfObject } from './nested-settings.js'
import { emptySettings, parseSettings, UnusableSettings } from './parse-settings.js'
import { appName, misnamedFiles, presentPlaces, searchPlaces } from './search-places.js'

/** Finds and loads the settings file with cosmiconfig. */

export interface FileLayer extends Layer {
  /** The absolute path of the settings file, if there is one. */
  readonly file: string | undefined
  /** False if a file exists but could not be read or parsed. */
  readonly isRead: boolean
}

/** Reads the settings file whose path is `named`. Without `named`, reads the first search place that has settings. */
export async function layerOfFile(cwd: string, rows: readonly Row[], named?: string): Promise<FileLayer> {
  if (named === undefined) return searchIn(cwd, rows)
  const path = resolve(cwd, named)
  try {
    return layerOf(named, 'flag --config', await createExplorer().load(path), path, rows)
  } catch (error) {
    return unread({ key: named, source: 'flag --config', message: whyNotLoaded(error, path) }, path)
  }
}

async function searchIn(cwd: string, rows: readonly Row[]): Promise<FileLayer> {
  let places: string[]
  try {
    places = presentPlaces(cwd)
  } catch (error) {
    // A folder that cannot be searched is a problem, because a file in it may contain the access list.
    const folder = dirname((error as NodeJS.ErrnoException).path ?? cwd)
    const message = `cannot be searched for a settings file, because ${whyUnreadableAt(folder, error)}. Give this user access to the folder, start the server in a different folder, or name the settings file with --config.`
    return unread({ key: folder, source: 'folder', message }, undefined)
  }
  const misnamed = await misnamedFiles(cwd)
  // Most servers have no settings file, and start faster without cosmiconfig.
  const nothing = { ...emptyLayer, findings: misnamed, file: undefined, isRead: true }
  if (places.length === 0) return nothing
  const problemWith = (place: string, error: unknown) => {
    const path = join(cwd, place)
    return unread({ key: place, source: `file ${place}`, message: whyNotLoaded(error, path) }, path)
  }
  let found: Loaded
  try {
    found = await createExplorer().search(cwd)
  } catch (error) {
    return problemWith(relative(cwd, (error as { readonly filepath?: string }).filepath ?? cwd), error)
  }
  const first = found ? relative(cwd, found.filepath) : undefined
  // cosmiconfig passes over a place that it cannot read.
  for (const place of first === undefined ? places : places.slice(0, places.indexOf(first))) {
    const error: unknown = await readTextFile(join(cwd, place)).then(
      () => undefined,
      error => error
    )
    if (error !== undefined) return problemWith(place, error)
  }
  if (first === undefined) return nothing
  const layer = layerOf(first, `file ${first}`, found, join(cwd, first), rows)
  const others = places.slice(places.indexOf(first) + 1).map(place => {
    const message = `is not read, because ${first} has precedence. Remove one of the two.`
    return { key: place, source: 'working directory', message, isWarning: true } as const
  })
  return { ...layer, findings: [...layer.findings, ...others, ...misnamed] }
}

type Explorer = ReturnType<typeof import('cosmiconfig').cosmiconfig>
type Loaded = Awaited<ReturnType<Explorer['search']>>

/**
 * Creates the searcher without the side effects of cosmiconfig. It reads its own options from `package.json` and
 * `.config/config.*` in the working directory, and runs the latter if it is a script. A file there could replace our search places,
 * and so hide the access list. And it asks the system for the home folder, which fails for a user who has none, such as that of
 * a container with `--user 12345`. Therefore both are replaced while this function runs, which is possible in worker threads, too.
 */
function createExplorer(): Explorer {
  const require = createRequire(import.meta.url)
  const { cwd } = process
  const { homedir } = os
  process.cwd = () => packageFolder
  os.homedir = () => packageFolder
  try {
    const { cosmiconfig, defaultLoaders }: typeof import('cosmiconfig') = require('cosmiconfig')
    const loaders = Object.fromEntries([...Object.keys(defaultLoaders), 'default'].map(name => [name, parseSettings]))
    return cosmiconfig(appName, {
      searchPlaces: [...searchPlaces],
      loaders,
      cache: false,
      ignoreEmptySearchPlaces: false
    })
  } finally {
    process.cwd = cwd
    os.homedir = homedir
  }
}

/** @param shown the path as the operator wrote it, or relative to the working directory */
function layerOf(shown: string, source: string, loaded: Loaded, path: string, rows: readonly Row[]): FileLayer {
  if (loaded?.isEmpty)
    return unread({ key: shown, source, message: 'is empty. Write settings into it, or remove it.' }, path)
  const inPackage = basename(path) === 'package.json' ? `, key ${appName}` : ''
  const layer = layerOfObject(loaded?.config ?? {}, `file ${shown}${inPackage}`, rows)
  const message = 'contains only comments, so it sets nothing.'
  const isNothing = loaded?.config === emptySettings
  const findings = isNothing ? [{ key: shown, source, message, isWarning: true } as const] : layer.findings
  return { ...layer, findings, file: path, isRead: true }
}

function unread(problem: ConfigProblem, file: string | undefined): FileLayer {
  return { ...emptyLayer, findings: [problem], file, isRead: false }
}

function whyNotLoaded(error: unknown, path: string): string {
  return error instanceof UnusableSettings ? error.message : `cannot be read, because ${whyUnreadableAt(path, error)}.`
}
