// The import rules of ARCHITECTURE.md, applied to source texts. The key of each text is its path below src/.
import { posix } from 'node:path'

export type Sources = Readonly<Record<string, string>>

// Each row may import only from the rows below it. Two parts in the same row do not import each other.
const rows: readonly (readonly string[])[] = [
  ['cli', 'index.ts', 'testing'],
  ['start.ts'],
  ['server.ts', 'open-demo.ts'],
  ['app.ts'],
  ['web'],
  ['services.ts'],
  ['log.ts'],
  ['sessions'],
  ['provider', 'cookie'],
  ['config'],
  ['pages'],
  ['base']
]
const rowOf = new Map(rows.flatMap((row, index) => row.map(part => [part, index] as const)))

// The demo is in no row. No part depends on it, and it imports only from these folders.
const demoMayImport = ['config', 'pages', 'base']

// Each of these packages may be imported only by the parts listed next to it.
const owners: readonly (readonly [name: RegExp, parts: readonly string[]])[] = [
  [/^(got|https-proxy-agent)$/, ['provider']],
  [/^(koa|koa-.+|@koa\/.+)$/, ['web', 'app.ts', 'demo']],
  [/^ioredis$/, ['sessions']],
  [/^undici$/, ['web']],
  [/^oidc-provider(\/.+)?$/, ['demo']],
  [/^commander$/, ['cli']],
  [/^(prom-client|@opentelemetry\/.+)$/, ['base']],
  [/^jose$/, ['provider']],
  [/^(cosmiconfig(\/.+)?|proxy-from-env)$/, ['config']]
]
const environmentReaders = ['config', 'cli']
const withoutContext = ['login', 'sessions', 'provider', 'cookie', 'config', 'pages', 'base']

interface Import {
  readonly kind: 'static' | 'type' | 'dynamic'
  /** A path below src/, or the name of a package. */
  readonly target: string
  readonly isOwn: boolean
}

/** Returns one sentence for each violation of the rules, and an empty list if there is none. */
export function breaches(sources: Sources): readonly string[] {
  const imports = new Map(Object.entries(sources).map(([path, text]) => [path, importsOf(path, text)]))
  const found: string[] = []
  for (const [path, list] of imports) {
    const part = partOf(path)
    if (part !== 'demo' && !rowOf.has(part)) found.push(`${path} has no place in the layers`)
    for (const one of list) found.push(...(one.isOwn ? arrowBreaches(path, one) : packageBreaches(path, one)))
    found.push(...textBreaches(path, sources[path] ?? ''))
  }
  return [...found, ...cycles(imports)]
}

function arrowBreaches(path: string, { kind, target }: Import): string[] {
  const [from, to] = [partOf(path), partOf(target)]
  if (from === to) return []
  if (to === 'demo') {
    if (from === 'open-demo.ts' && kind !== 'static') return []
    return [`${path} imports ${target}: the demo is loaded by open-demo.ts alone, when asked for`]
  }
  if (from === 'demo') return demoMayImport.includes(to) ? [] : [`${path} imports ${target}: the demo stands alone`]
  const isDown = (rowOf.get(from) ?? -1) < (rowOf.get(to) ?? -1)
  return isDown ? [] : [`${path} imports ${target}: not a layer below`]
}

function packageBreaches(path: string, { target }: Import): string[] {
  const owner = owners.find(([name]) => name.test(target))
  return owner && !owner[1].includes(partOf(path)) ? [`${path} imports ${target}: only ${owner[1].join(', ')} may`] : []
}

function textBreaches(path: string, text: string): string[] {
  const [part, code] = [partOf(path), withoutComments(text)]
  const found: string[] = []
  if (!environmentReaders.includes(part) && readsEnvironment(code)) found.push(`${path} reads the environment`)
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

function cycles(imports: ReadonlyMap<string, readonly Import[]>): string[] {
  const found: string[] = []
  const done = new Set<string>()
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start !== -1) {
      found.push(`a cycle: ${[...trail.slice(start), path].join(' > ')}`)
      return
    }
    if (done.has(path)) return
    for (const { isOwn, target } of imports.get(path) ?? []) if (isOwn) visit(target, [...trail, path])
    done.add(path)
  }
  for (const path of imports.keys()) visit(path, [])
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
  const part = path.split('/', 1)[0] ?? path
  // Until the token requests of a refresh are in login, the two folders import each other.
  return part === 'login' ? 'sessions' : part
}

/**
 * Removes comments. It assumes that a comment begins a line or follows white space, which is true of all code in this
 * project.
 */
function withoutComments(text: string): string {
  return text.replace(/(^|\s)\/\*[\s\S]*?\*\//g, '$1').replace(/(^|\s)\/\/.*$/gm, '$1')
}
