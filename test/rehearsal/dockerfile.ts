// Executes the steps of a Dockerfile without Docker. Every stage is a folder, and this machine with its Node is the
// base image.
import { spawnSync } from 'node:child_process'
import { chmod, cp, mkdir, readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { repository } from '../helpers/repository.js'

interface Instruction {
  readonly name: string
  readonly text: string
}

export interface Image {
  /** The folder that stands for the root of the image. */
  readonly root: string
  /** The working folder of a container. */
  readonly workingFolder: string
  readonly env: Readonly<Record<string, string>>
  readonly entrypoint: readonly string[]
  readonly healthcheck: readonly string[]
  readonly user: string | undefined
}

export class StepFailed extends Error {
  override readonly name = 'StepFailed'
}

/** Builds the stages below `folder` and returns the last one. Throws StepFailed with the output of a failed step. */
export async function build(dockerfile: string, ignored: string, folder: string): Promise<Image> {
  const stages = new Map<string, string>()
  let image: Image = nothing(folder)
  let count = 0
  for (const { name, text } of instructions(dockerfile)) {
    switch (name) {
      case 'FROM': {
        const root = join(folder, `stage-${count++}`)
        await mkdir(root)
        image = nothing(root)
        const [, as] = / AS (\w+)$/.exec(text) ?? []
        if (as) stages.set(as, root)
        break
      }
      case 'WORKDIR':
        image = { ...image, workingFolder: image.root + text }
        await mkdir(image.workingFolder, { recursive: true })
        break
      case 'ENV':
        image = {
          ...image,
          env: { ...image.env, ...Object.fromEntries(text.split(/\s+/).map(pair => pair.split('='))) }
        }
        break
      case 'COPY':
        await copy(text, image, stages, ignored)
        break
      case 'RUN':
        run(text, image)
        break
      case 'USER':
        image = { ...image, user: text }
        break
      case 'ENTRYPOINT':
        image = { ...image, entrypoint: JSON.parse(text) as string[] }
        break
      case 'HEALTHCHECK':
        image = { ...image, healthcheck: JSON.parse(text.slice(text.indexOf('['))) as string[] }
        break
      case 'ARG':
      case 'EXPOSE':
        break
      default:
        throw new Error(`The rehearsal does not know ${name}.`)
    }
  }
  // mkdtemp creates folders that only their owner can read, but every user of an image can read its files.
  await chmod(folder, 0o755)
  return image
}

function nothing(root: string): Image {
  return { root, workingFolder: root, env: {}, entrypoint: [], healthcheck: [], user: undefined }
}

function instructions(dockerfile: string): Instruction[] {
  return dockerfile
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .map(line => /^([A-Z]+)\s+(.*)$/.exec(line.trim()))
    .flatMap(match => (match ? [{ name: match[1] ?? '', text: (match[2] ?? '').trim() }] : []))
}

async function copy(
  text: string,
  { root, workingFolder }: Image,
  stages: ReadonlyMap<string, string>,
  ignored: string
): Promise<void> {
  const [, from, paths = ''] = /^(?:--from=(\w+) +)?(.*)$/.exec(text) ?? []
  const words = paths.split(/ +/)
  const destination = words.pop() ?? ''
  const into = destination.startsWith('/') ? root + destination : join(workingFolder, destination)
  const source = from === undefined ? repository : (stages.get(from) ?? '')
  for (const path of words) {
    if (from === undefined && isIgnored(path, ignored)) throw new StepFailed(`${path} is in .dockerignore`)
    await cp(join(source, path), destination.endsWith('/') ? join(into, basename(path)) : into, { recursive: true })
  }
}

function isIgnored(path: string, ignored: string): boolean {
  return ignored.split('\n').some(line => line !== '' && (path === line || path.startsWith(`${line}/`)))
}

function run(command: string, { workingFolder, env }: Image): void {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], {
    cwd: workingFolder,
    // Without the npm and Node variables of this process, as in a container. The settings of the package registry are
    // kept.
    env: { ...withoutNpm(), ...env },
    encoding: 'utf8'
  })
  if (status !== 0) throw new StepFailed(`${command}: ${stdout}${stderr}`)
}

function withoutNpm(): NodeJS.ProcessEnv {
  const ofThisRun = /^(npm_(?!config_(registry|cache|userconfig))|NODE_|INIT_CWD)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ofThisRun.test(name)))
}

/** The names of all packages in a node_modules folder. */
export async function packagesIn(modules: string): Promise<string[]> {
  const names = await readdir(modules)
  const scoped = names.filter(name => name.startsWith('@'))
  const inside = await Promise.all(
    scoped.map(async scope => (await readdir(join(modules, scope))).map(name => `${scope}/${name}`))
  )
  return [...names.filter(name => !/^[@.]/.test(name)), ...inside.flat()]
}
