// The package as npm would publish it.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, realpath, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { packageJson, repository } from './repository.js'
import { tempFolder } from './temp-folder.js'

interface Packed {
  readonly size: number
  readonly unpackedSize: number
  readonly files: readonly { readonly path: string }[]
}

let packed: Packed | undefined

/** Lists the files that `npm pack` would put into the package, without building or writing anything. */
export function pack(): Packed {
  // It takes npm a second, and the files do not change during a test run.
  packed ??= runPack()
  return packed
}

function runPack(): Packed {
  const { stdout, stderr } = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: repository,
    encoding: 'utf8'
  })
  // Some versions of npm print a list, others an object with the package's name as its key.
  const [result] = Object.values(JSON.parse(stdout || '[]') as Record<string, Packed>)
  if (!result) throw new Error(`npm pack printed nothing: ${stderr}`)
  return result
}

/** Packs this folder, by default the repository, into another one. Returns the path of the packed file. */
export function packInto(folder: string, source = repository, flags: readonly string[] = ['--ignore-scripts']): string {
  const args = ['pack', '--silent', ...flags, '--pack-destination', folder]
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: source, encoding: 'utf8' })
  if (status !== 0) throw new Error(`npm pack ended with ${status}: ${stdout}${stderr}`)
  return join(folder, stdout.trim().split('\n').at(-1) ?? '')
}

/**
 * Creates a folder with `files` in which the packed files are installed as `platform-auth-server`, as `npm install`
 * would do it. The only development dependencies are @types/koa and @types/node.
 */
export async function folderWithPackage(
  t: Pick<ExecutionContext, 'teardown'>,
  files: Readonly<Record<string, string>> = {}
): Promise<string> {
  const folder = await tempFolder(t, files)
  const modules = join(folder, 'node_modules')
  await installPackage(modules)
  await linkTypes(modules)
  return folder
}

/**
 * Installs the packed files into a folder `node_modules`. Its runtime dependencies are links to those of the repository. If another
 * version is already there, the link is inside the package, as npm nests it.
 */
export async function installPackage(modules: string): Promise<void> {
  const installed = join(modules, 'platform-auth-server')
  await rm(installed, { recursive: true, force: true })
  for (const name of Object.keys(packageJson.dependencies)) {
    await linkModule(modules, name)
    const isOurs = (await realpath(join(modules, name))) === (await realpath(join(repository, 'node_modules', name)))
    if (!isOurs) await linkModule(join(installed, 'node_modules'), name)
  }
  for (const { path } of pack().files) {
    await cp(join(repository, path), join(installed, path), { recursive: true })
  }
}

/** Adds the types that a TypeScript program installs besides the package, as links to those of the repository. */
export async function linkTypes(modules: string): Promise<void> {
  for (const name of ['@types/koa', '@types/node']) await linkModule(modules, name)
}

async function linkModule(modules: string, name: string): Promise<void> {
  const link = join(modules, name)
  if (existsSync(link)) return
  await mkdir(dirname(link), { recursive: true })
  await symlink(join(repository, 'node_modules', name), link)
}

const unreachable = /ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|ENOTCACHED/

/** Ends a test early if the output of npm shows that no registry can be reached. In CI the test continues and fails. */
export function isSkippedWithoutRegistry(t: ExecutionContext, output: string): boolean {
  if (!unreachable.test(output) || process.env.CI === 'true') return false
  t.log('no package registry can be reached')
  t.pass()
  return true
}
