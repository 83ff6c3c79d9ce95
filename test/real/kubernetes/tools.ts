// The tools of this rehearsal, built from the Go module proxy, and folders of Go modules that contain schemas.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { repository } from '../../helpers/repository.js'

export const cacheFolder = process.env.PLATFORM_AUTH_KUBERNETES_CACHE ?? join(repository, '.cache', 'kubernetes')

export interface Outcome {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command in the root of the repository. */
export function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Outcome {
  const options = { cwd: repository, encoding: 'utf8', maxBuffer: 2 ** 28, env: { ...process.env, ...env } } as const
  const { status, stdout, stderr, error } = spawnSync(command, args, options)
  if (error) throw error
  return { status, stdout, stderr }
}

/** Builds the program of a Go package once. Returns its path. */
export function goProgram(name: string, packagePath: string, version: string): string {
  const folder = join(cacheFolder, `${name}-${version}`)
  const executable = join(folder, name)
  if (existsSync(executable)) return executable
  const { status, stderr } = run('go', ['install', `${packagePath}@${version}`], { GOBIN: folder })
  if (status !== 0) throw new Error(`${packagePath}@${version} cannot be built: ${stderr}`)
  return executable
}

/** Downloads a Go module without its dependencies. Returns the folder with its files. */
export function goModule(path: string, version: string): string {
  const { stdout } = run('go', ['mod', 'download', '-json', `${path}@${version}`])
  const { Dir: folder, Error: error } = JSON.parse(stdout) as { Dir?: string; Error?: string }
  if (folder === undefined) throw new Error(`${path}@${version} cannot be downloaded: ${error}`)
  return folder
}
