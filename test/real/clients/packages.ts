// The packages of the programs, which npm installs once into a cache folder.
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from '../../helpers/repository.js'
import { run } from '../programs.js'
import type { Program } from './program.js'

const cacheFolder = process.env.PLATFORM_AUTH_CLIENTS_CACHE ?? join(repository, '.cache', 'clients')

/** Installs the packages of a program, unless they are there. Returns the folder that contains `node_modules`. */
export async function install({ name, packages }: Pick<Program, 'name' | 'packages'>): Promise<string> {
  const folder = join(cacheFolder, name)
  const list = join(folder, 'installed.txt')
  const wanted = packages.join('\n')
  if (existsSync(list) && (await readFile(list, 'utf8')) === wanted) return folder
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{ "private": true }')
  const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline']
  // The lock file makes this folder the root of the applications in it, so Next.js finds its packages here.
  if (packages.length > 0) await run({ command: 'npm', args: ['install', ...flags, ...packages], cwd: folder })
  await writeFile(list, wanted)
  return folder
}
