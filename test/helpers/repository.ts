// The repository's own files, for tests of documents, samples and deployment files.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'

export const repository = fileURLToPath(new URL('../../', import.meta.url))

export function readText(path: string): string {
  return readFileSync(repository + path, 'utf8')
}

export const packageJson = JSON.parse(readText('package.json')) as {
  readonly name: string
  readonly version: string
  readonly bin: Readonly<Record<string, string>>
  readonly engines: { readonly node: string }
  readonly scripts: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
}

/** Every file below these folders, as a path from the root of the repository. */
export function filesBelow(...folders: readonly string[]): string[] {
  return folders.flatMap(folder =>
    readdirSync(repository + folder, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(entry => `${entry.parentPath.slice(repository.length)}/${entry.name}`)
      .sort()
  )
}

/** The text of all files below this folder. */
export function textBelow(folder: string): string {
  return filesBelow(folder).map(readText).join('\n')
}

/** Parses every document of a YAML file. */
export function readYaml(path: string): unknown[] {
  return readText(path)
    .split(/^---$/m)
    .map(text => parse(text) as unknown)
}
