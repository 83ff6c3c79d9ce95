// Programs that these tests run next to the server, such as gateways and identity providers. Those that are built or
// downloaded are kept in a folder between runs.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, existsSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { repository } from '../helpers/repository.js'
import type { Teardown } from '../helpers/scope.js'

export const cacheFolder = process.env.PLATFORM_AUTH_PROVIDERS_CACHE ?? join(repository, '.cache', 'providers')

export function isInstalled(program: string): boolean {
  return spawnSync('which', [program]).status === 0
}

export interface Command {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

// The limit is long, because a machine that builds something at the same time is slow.
const START_MS = 600_000
const STOP_MS = 10_000

/**
 * Starts a server and waits until isReady() returns true. The teardown stops it. If the server ends before it is ready,
 * the error contains its output.
 */
export async function startService(
  t: Teardown,
  command: Command,
  isReady: () => Promise<boolean>
): Promise<{ output(): string }> {
  const { child, output } = launch(command)
  const ended = once(child, 'close')
  t.teardown(async () => {
    signalGroup(child, 'SIGTERM')
    const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), STOP_MS)
    await ended
    clearTimeout(timer)
  })
  const deadline = Date.now() + START_MS
  while (!(await isReady().catch(() => false))) {
    if (child.exitCode !== null || Date.now() > deadline) {
      throw new Error(`${command.command} did not start:\n${output()}`)
    }
    await pause(50)
  }
  return { output }
}

/** Returns true if `url` responds with this status. */
export async function hasStatus(url: string, status: number): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(5000) })
  await response.body?.cancel()
  return response.status === status
}

/** Runs a command. Rejects with the last part of its output if it fails. */
export async function run(command: Command): Promise<void> {
  const { child, output } = launch(command)
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${command.command} ${command.args.join(' ')} ended with ${code}:\n${output()}`)
}

function launch({ command, args, env, cwd }: Command) {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe']
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-20_000)
    })
  }
  return { child, output: () => output }
}

/** Signals the process and those that it has started, because some servers are started by a script. */
function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch {
    // The process has already ended.
  }
}

interface GoProgram {
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
  if (existsSync(executable)) return executable
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
  if (existsSync(folder)) return folder
  await mkdir(cacheFolder, { recursive: true })
  const archive = `${folder}.tar.gz`
  await run({ command: 'curl', args: ['--fail', '--silent', '--show-error', '--location', '--output', archive, url] })
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(archive)) hash.update(chunk as Buffer)
  const found = hash.digest('hex')
  if (found !== sha256) throw new Error(`${url} has the SHA-256 ${found}, not ${sha256}`)
  const partial = `${folder}.part`
  await mkdir(partial, { recursive: true })
  await run({ command: 'tar', args: ['-xzf', archive, '--strip-components=1', '-C', partial] })
  await rename(partial, folder)
  return folder
}
