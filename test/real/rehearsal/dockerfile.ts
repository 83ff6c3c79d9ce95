// Executes the steps of a Dockerfile without Docker. Every stage is a folder, and this machine with its Node is the
// base image.
import { spawnSync } from 'node:child_process'
import { chmod, cp, mkdir, readdir, readFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'

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

/**
 * Builds deploy/Dockerfile with the files of `source`, as `docker build -f deploy/Dockerfile <source>` does. The build context, which
 * contains the files that are not ignored, and the stages become folders in `folder`. Returns the last stage. Throws StepFailed with
 * the output of a failed step.
 */
export async function build(source: string, folder: string): Promise<Image> {
  const dockerfile = await readFile(join(source, 'deploy/Dockerfile'), 'utf8')
  const context = join(folder, 'context')
  const isIgnored = ignoring(await readFile(join(source, 'deploy/Dockerfile.dockerignore'), 'utf8'))
  await cp(source, context, { recursive: true, filter: path => !isIgnored(relative(source, path)) })
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
        await copy(text, image, { context, stages })
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

function instructions(dockerfile: string) {
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
  { context, stages }: { readonly context: string; readonly stages: ReadonlyMap<string, string> }
): Promise<void> {
  const [, from, paths = ''] = /^(?:--from=(\w+) +)?(.*)$/.exec(text) ?? []
  const words = paths.split(/ +/)
  const destination = words.pop() ?? ''
  const into = destination.startsWith('/') ? root + destination : join(workingFolder, destination)
  const source = from === undefined ? context : (stages.get(from) ?? '')
  const inSource = await readdir(source)
  for (const word of words) {
    const found = word.includes('*') ? inSource.filter(name => patternOf(word).test(name)) : [word]
    if (found.length === 0) throw new StepFailed(`COPY: no file matches ${word}`)
    for (const path of found) {
      const target = destination.endsWith('/') ? join(into, basename(path)) : into
      await cp(join(source, path), target, { recursive: true }).catch((error: Error) => {
        throw new StepFailed(`COPY ${path}: ${error.message}`)
      })
    }
  }
}

/** Returns a function that decides if a .dockerignore file excludes a path. The last line that matches decides. */
function ignoring(text: string): (path: string) => boolean {
  const rules = text
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))
    .map(line => ({ isIgnored: !line.startsWith('!'), pattern: patternOf(line.replace(/^!/, '')) }))
  return path => path !== '' && (rules.findLast(({ pattern }) => pattern.test(path))?.isIgnored ?? false)
}

// A pattern also matches the files in a folder that it matches.
function patternOf(text: string): RegExp {
  const source = text
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replace(/\*\*\/|\*/g, part => (part === '*' ? '[^/]*' : '(?:.*/)?'))
  return new RegExp(`^${source}(?:/|$)`)
}

function run(command: string, { workingFolder, env }: Image): void {
  // The builds have time, but other tests that run in parallel have time limits, so they get the processors first.
  const { status, stdout, stderr } = spawnSync('nice', ['-n', '15', 'sh', '-c', command], {
    cwd: workingFolder,
    // Without the npm and Node variables of this process, as in a container. The settings of the package registry are kept. npm takes
    // packages from its cache, which saves requests to the registry.
    env: { ...withoutNpm(), npm_config_prefer_offline: 'true', npm_config_audit: 'false', ...env },
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
