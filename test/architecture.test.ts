// The import rules of ARCHITECTURE.md, and other rules about the text of source files.
import { readdir, readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { words } from './helpers/words.js'

/** The texts of files, by their paths below the folder. */
type Sources = Readonly<Record<string, string>>

// Each row may import from the rows below it. The parts of one row may import each other, as long as no folders form a cycle.
const rows: readonly (readonly string[])[] = [
  ['cli'],
  ['server', 'app.ts', 'index.ts', 'testing'],
  ['web'],
  ['login', 'sessions'],
  ['provider', 'cookie', 'config', 'pages', 'demo'],
  ['base']
]
const rowOf = new Map(rows.flatMap((row, index) => row.map(part => [part, index] as const)))

// The demo is loaded only when asked for. Other parts know only this file, which imports the rest of the demo dynamically.
const DEMO_ENTRY = 'demo/open.ts'

// Other parts know sessions, but not leases. The command `check` also uses the Redis client.
const SESSIONS_ENTRY = 'sessions/index.ts'

// Each of these packages may be imported only by the parts listed next to it.
const owners: readonly (readonly [name: RegExp, parts: readonly string[]])[] = [
  [/^got$/, ['provider']],
  [/^(koa|koa-.+|@koa\/.+)$/, ['web', 'app.ts', 'server', 'demo']],
  [/^ioredis$/, ['sessions']],
  [/^undici$/, ['web', 'demo', 'testing']],
  [/^oidc-provider(\/.+)?$/, ['demo']],
  [/^commander$/, ['cli']],
  [/^(prom-client|@opentelemetry\/.+)$/, ['base']],
  [/^jose$/, ['provider', 'demo']],
  [/^(cosmiconfig|yaml|proxy-from-env)$/, ['config']]
]
const environmentReaders = ['config', 'cli']
// Their code runs for each refresh. If a function literal is assigned to a property, V8 creates the function in the old
// generation, where it keeps all that it refers to in memory until the next full collection.
const withoutOldFunctions = ['login', 'sessions', 'provider', 'cookie', 'base']
const withoutContext = ['login', 'sessions', 'provider', 'cookie', 'config', 'pages', 'base']

interface Import {
  readonly kind: 'static' | 'type' | 'dynamic'
  /** A path below src/, or the name of a package. */
  readonly target: string
  readonly isOwn: boolean
}

const root = fileURLToPath(new URL('..', import.meta.url))

async function read(folder: string): Promise<Sources> {
  const paths = await readdir(join(root, folder), { recursive: true })
  const sources: Record<string, string> = {}
  for (const path of paths.filter(path => path.endsWith('.ts'))) {
    sources[path.replaceAll('\\', '/')] = await readFile(join(root, folder, path), 'utf8')
  }
  return sources
}

test('all source files keep the import rules of ARCHITECTURE.md, and neither files nor folders form a cycle', async t => {
  const sources = await read('src')
  t.true(['index.ts', 'app.ts', 'server/serve.ts', 'config/settings.ts'].every(path => path in sources))
  t.deepEqual(breaches(sources), [])
})

// Each of these files begins with a map of its folder.
const maps = words`
  cli/check/index config/load cookie/session-cookie demo/index login/mode pages/index provider/client server/serve
  sessions/index web/errors/error-responses web/every-request/limits web/proxy/middleware web/request/request
  web/routes/auth-routes web/static/static-files`

for (const path of maps) {
  test(`the map at the beginning of ${path}.ts names every other file and sub-folder of its folder`, async t => {
    const sources = Object.keys(await read('src')).filter(other => !other.endsWith('.d.ts') && other !== `${path}.ts`)
    const [comment = ''] = (await readFile(join(root, 'src', `${path}.ts`), 'utf8')).split('*/', 1)
    const below = sources.filter(other => other.startsWith(`${posix.dirname(path)}/`))
    const names = below.map(other => posix.relative(posix.dirname(path), other).replace(/\/.*|\.ts$/, ''))
    const missing = names.filter(
      name => !comment.includes(`\`${name}\``) && !new RegExp(`\`${name}(\\.ts|/)`).test(comment)
    )
    t.deepEqual([...new Set(missing)], [])
  })
}

test('each file of src/ has a name of its own, except index.ts', async t => {
  const paths = Object.keys(await read('src'))
  const names = paths.map(path => posix.basename(path)).filter(name => name !== 'index.ts')
  const repeated = names.filter((name, index) => names.indexOf(name) !== index)
  t.deepEqual(repeated, [])
})

test('only one helper imports nock', async t => {
  const texts = Object.entries(await read('test'))
  const importers = texts.flatMap(([path, text]) => (/(from|import|\() ?'nock'/.test(text) ? [path] : []))
  t.deepEqual(importers, ['helpers/nock.ts'])
})

/** Returns one sentence for each violation of the rules, and an empty list if there is none. */
function breaches(sources: Sources): readonly string[] {
  const imports = new Map(Object.entries(sources).map(([path, text]) => [path, importsOf(path, text)]))
  const found: string[] = []
  for (const [path, list] of imports) {
    const part = partOf(path)
    if (!rowOf.has(part)) found.push(`${path} has no place in the layers`)
    for (const one of list) found.push(...(one.isOwn ? arrowBreaches(path, one) : packageBreaches(path, one)))
    found.push(...textBreaches(path, sources[path] ?? ''))
  }
  return [...found, ...cycles(ownTargets(imports)), ...cycles(foldersOf(ownTargets(imports)))]
}

/** A file or folder, and those that it imports. */
type Graph = ReadonlyMap<string, readonly string[]>

function ownTargets(imports: ReadonlyMap<string, readonly Import[]>): Graph {
  return new Map([...imports].map(([path, list]) => [path, list.filter(one => one.isOwn).map(one => one.target)]))
}

/** The files of a folder are apart from its sub-folders, so `web`, `web/every-request` and `web/routes` are three folders. */
function foldersOf(files: Graph): Graph {
  const folders = new Map<string, Set<string>>()
  for (const [path, targets] of files) {
    const folder = folderOf(path)
    const counted = targets.filter(target => !isOfMainFile(path, target))
    const others = counted.map(folderOf).filter(target => target !== folder)
    folders.set(folder, new Set([...(folders.get(folder) ?? []), ...others]))
  }
  return new Map([...folders].map(([folder, targets]) => [folder, [...targets]]))
}

// A file directly in src/, such as app.ts, stands for itself.
function folderOf(path: string): string {
  return path.includes('/') ? posix.dirname(path) : path
}

/** True if the main file of a folder imports from a sub-folder, which may import from the other files of the folder. */
function isOfMainFile(path: string, target: string): boolean {
  return path.endsWith('/index.ts') && folderOf(target).startsWith(`${folderOf(path)}/`)
}

function arrowBreaches(path: string, { kind, target }: Import): string[] {
  const found: string[] = []
  const [from, to] = [rowOf.get(partOf(path)) ?? -1, rowOf.get(partOf(target)) ?? -1]
  if (from > to) found.push(`${path} imports ${target}: not in a layer below`)
  const entersDemo = partOf(target) === 'demo' && target !== DEMO_ENTRY
  const isFromDemo = partOf(path) === 'demo' && path !== DEMO_ENTRY
  if (entersDemo && !isFromDemo && (path !== DEMO_ENTRY || kind === 'static'))
    found.push(`${path} imports ${target}: ${DEMO_ENTRY} alone loads the demo, when asked for`)
  const entersSessions = partOf(target) === 'sessions' && partOf(path) !== 'sessions'
  const isCheck = path.startsWith('cli/check/') && /^sessions\/redis\/redis-(client|errors)\.ts$/.test(target)
  if (entersSessions && target !== SESSIONS_ENTRY && !isCheck)
    found.push(`${path} imports ${target}: a lease never leaves the sessions, so import only ${SESSIONS_ENTRY}`)
  return found
}

function packageBreaches(path: string, { target }: Import): string[] {
  const owner = owners.find(([name]) => name.test(target))
  return owner && !owner[1].includes(partOf(path)) ? [`${path} imports ${target}: only ${owner[1].join(', ')} may`] : []
}

function textBreaches(path: string, text: string): string[] {
  const [part, code] = [partOf(path), withoutComments(text)]
  const found: string[] = []
  if (!environmentReaders.includes(part) && readsEnvironment(code)) found.push(`${path} reads the environment`)
  if (withoutOldFunctions.includes(part) && /\.\w+ = (async )?(\(.*\)|\w+) =>/.test(code))
    found.push(`${path} assigns a function to a property`)
  if (withoutContext.includes(part) && /\bctx\b/.test(code)) found.push(`${path} knows a Koa context`)
  return found
}

function readsEnvironment(code: string): boolean {
  return (
    /\bprocess\s*(\?\.|\.)\s*env\b|\bprocess\s*\[|\{[^{}]*\benv\b[^{}]*\}\s*=\s*process\b/.test(code) ||
    importsEnv(code)
  )
}

function importsEnv(code: string): boolean {
  return /\bimport\s*\{[^}]*\benv\b[^}]*\}\s*from\s*'(node:)?process'/.test(code)
}

function cycles(graph: Graph): string[] {
  const found: string[] = []
  const done = new Set<string>()
  const visit = (node: string, trail: readonly string[]): void => {
    const start = trail.indexOf(node)
    if (start !== -1) {
      found.push(`a cycle: ${[...trail.slice(start), node].join(' > ')}`)
      return
    }
    if (done.has(node)) return
    for (const target of graph.get(node) ?? []) visit(target, [...trail, node])
    done.add(node)
  }
  for (const node of graph.keys()) visit(node, [])
  return found
}

// Matches `import … from`, `export … from`, `import '…'` and `import('…')`. Imports of types count too, because they
// also make one file depend on another.
const importPattern =
  /^[ \t]*(?:import|export)\b([^'";]*?)\bfrom\s*(['"])([^'"]+)\2|^[ \t]*import\s*(['"])([^'"]+)\4|\bimport\s*\(\s*(['"`])([^'"`]+)\6/gm

function importsOf(path: string, text: string): readonly Import[] {
  return [...withoutComments(text).matchAll(importPattern)].map(match => {
    const [, clause, , from, , bare, , dynamic] = match
    const specifier = from ?? bare ?? dynamic ?? ''
    const isType = clause !== undefined && /^\s*type\s+[^\s,]/.test(clause)
    const kind = dynamic !== undefined ? 'dynamic' : isType ? 'type' : 'static'
    if (specifier.startsWith('.'))
      return { kind, target: ownPath(posix.join(posix.dirname(path), specifier)), isOwn: true }
    if (specifier.startsWith('#src/')) return { kind, target: ownPath(specifier.slice('#src/'.length)), isOwn: true }
    return { kind, target: specifier, isOwn: false }
  })
}

function ownPath(specifier: string): string {
  return specifier.replace(/\.js$/, '.ts')
}

function partOf(path: string): string {
  return path.split('/', 1)[0] ?? path
}

/**
 * Removes comments. It assumes that a comment begins a line or follows white space, which is true of all code in this
 * project.
 */
function withoutComments(text: string): string {
  return text.replace(/(^|\s)\/\*[\s\S]*?\*\//g, '$1').replace(/(^|\s)\/\/.*$/gm, '$1')
}
