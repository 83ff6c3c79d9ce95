// Providers and gateways that were built or downloaded are kept in a folder between runs.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { access, mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from '../../helpers/repository.js'
import { run } from './provider.js'

export const cacheFolder = process.env.PLATFORM_AUTH_PROVIDERS_CACHE ?? join(repository, '.cache', 'providers')

export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false
  )
}

export interface GoProgram {
  /** The name of the folder: the program's name and version. */
  readonly name: string
  readonly module: string
  readonly version: string
  /** The Go package with `main`. */
  readonly package: string
  /** Lines that must be in the go.mod of the build, because Go reads `replace` only in the main module. */
  readonly replace?: readonly string[]
  readonly tags?: string
  readonly cgo?: boolean
}

/**
 * Builds a Go program from the Go module proxy, with its dependencies in the versions of its own go.mod. Returns the
 * path of the executable.
 */
export async function buildGoProgram(program: GoProgram): Promise<string> {
  const { name, module, version, tags = '', cgo = false, replace = [] } = program
  const folder = join(cacheFolder, name)
  const executable = join(folder, 'program')
  if (await exists(executable)) return executable
  await mkdir(folder, { recursive: true })
  const lines = ['module providers.test/build', 'go 1.24', `require ${module} ${version}`, ...replace]
  await writeFile(join(folder, 'go.mod'), `${lines.join('\n')}\n`)
  await writeFile(join(folder, 'build.go'), `//go:build never\n\npackage build\n\nimport _ "${program.package}"\n`)
  const env = { GOFLAGS: '-mod=mod', CGO_ENABLED: cgo ? '1' : '0' }
  await run({ command: 'go', args: ['mod', 'tidy'], cwd: folder, env })
  const partial = `${executable}.part`
  await run({ command: 'go', args: ['build', '-tags', tags, '-o', partial, program.package], cwd: folder, env })
  await rename(partial, executable)
  return executable
}

/** Downloads and unpacks a tar.gz archive with a known SHA-256. Returns the folder. */
export async function unpackArchive(name: string, url: string, sha256: string): Promise<string> {
  const folder = join(cacheFolder, name)
  if (await exists(folder)) return folder
  await mkdir(cacheFolder, { recursive: true })
  const archive = `${folder}.tar.gz`
  await run({ command: 'curl', args: ['--fail', '--silent', '--show-error', '--location', '--output', archive, url] })
  const found = await hashOf(archive)
  if (found !== sha256) throw new Error(`${url} has the SHA-256 ${found}, not ${sha256}`)
  const partial = `${folder}.part`
  await mkdir(partial, { recursive: true })
  await run({ command: 'tar', args: ['-xzf', archive, '--strip-components=1', '-C', partial] })
  await rename(partial, folder)
  return folder
}

async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}
