import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { breaches, type Sources } from './helpers/architecture.js'

const root = fileURLToPath(new URL('..', import.meta.url))

async function read(folder: string): Promise<Sources> {
  const paths = await readdir(join(root, folder), { recursive: true })
  const sources: Record<string, string> = {}
  for (const path of paths.filter(path => path.endsWith('.ts'))) {
    sources[path.replaceAll('\\', '/')] = await readFile(join(root, folder, path), 'utf8')
  }
  return sources
}

test('all source files keep the import rules of ARCHITECTURE.md, and no imports form a cycle', async t => {
  const sources = await read('src')
  t.true(['app.ts', 'server.ts', 'index.ts', 'config/settings.ts'].every(path => path in sources))
  t.deepEqual(breaches(sources), [])
})

test('only one helper imports nock', async t => {
  const importers = Object.entries(await read('test')).filter(([, text]) => /(from|import|\() ?'nock'/.test(text))
  const paths = importers.map(([path]) => path)
  t.deepEqual(paths, ['helpers/nock.ts'])
})

const above = /not a layer below/
const environment = /reads the environment/
const loadsDemo = /demo is loaded/

// Each of these examples breaks one rule, to show that the check finds it.
const broken: readonly (readonly [what: string, sources: Sources, breach: RegExp])[] = [
  ['an import from a layer above', { 'config/a.ts': "import '../http/b.js'" }, /^config\/a\.ts .* not a layer below/],
  ['a re-export from a layer above', { 'login/a.ts': "export * from '../http/b.js'" }, above],
  ['a dynamic import from a layer above', { 'session/a.ts': "const b = await import('../http/b.js')" }, above],
  ['a type in an import() from a layer above', { 'login/a.ts': "let b: import('../http/b.js').B" }, above],
  ['an import through #src from a layer above', { 'login/a.ts': "import { b } from '#src/http/b.js'" }, above],
  ['an import between two parts of the same layer', { 'provider/a.ts': "import { b } from '../session/b.js'" }, above],
  ['a file that belongs to no layer', { 'utils/a.ts': 'export const a = 1' }, /^utils\/a\.ts has no place/],
  ['an import that always loads the demo', { 'open-demo.ts': "import './demo/index.js'" }, loadsDemo],
  ['a part other than open-demo.ts that loads the demo', { 'app.ts': "await import('./demo/index.js')" }, loadsDemo],
  ['a demo that imports from the server', { 'demo/a.ts': "import { b } from '../app.js'" }, /demo stands alone/],
  ['got imported outside of provider', { 'modes/a.ts': "import got from 'got'" }, /imports got: only provider/],
  ['koa imported below http', { 'session/a.ts': "import type { Context } from 'koa'" }, /imports koa/],
  ['ioredis imported outside of store', { 'services.ts': "import { Redis } from 'ioredis'" }, /imports ioredis/],
  ['process.env read outside of config and cli', { 'app.ts': 'const home = process.env.HOME' }, environment],
  ['env imported outside of config and cli', { 'app.ts': "import { env } from 'node:process'" }, environment],
  ['env destructured from process outside of config and cli', { 'app.ts': 'const { env } = process' }, environment],
  ['an import from config in support', { 'support/a.ts': "import { b } from '../config/b.js'" }, above],
  ['a Koa context used below http', { 'modes/a.ts': 'const a = (ctx: Context) => ctx.session' }, /knows a Koa context/],
  [
    'a cycle of imports inside a folder',
    { 'http/a.ts': "import './b.js'", 'http/b.ts': "import './c.js'", 'http/c.ts': "import './a.js'" },
    /^a cycle: http\/a\.ts > http\/b\.ts > http\/c\.ts > http\/a\.ts$/
  ]
]

for (const [what, sources, breach] of broken) {
  test(`the check finds ${what}`, t => {
    const found = breaches(sources)
    t.is(found.length, 1, found.join('\n'))
    t.regex(found[0] ?? '', breach)
  })
}

test('the check finds nothing wrong with code that keeps the rules', t => {
  const sources: Sources = {
    'cli/start.ts': 'process.env.PORT',
    'open-demo.ts': "import type { Demo } from './demo/index.js'\nconst demo = await import('./demo/index.js')",
    'demo/index.ts': "import type Koa from 'koa'\nimport { renderPage } from '../pages/page.js'",
    'http/login.ts':
      "import type { Context } from 'koa'\nimport { a } from '../login/a.js'\nctx.body = { accept: '*/*' }",
    'login/a.ts':
      "// import '../app.js', process.env and ctx may be spoken of\n/* import('../http/b.js') */\nimport 'node:crypto'",
    'provider/client.ts': "import got from 'got'\nconst address = 'https://idp.example'\nconst contexts = 1"
  }
  t.deepEqual(breaches(sources), [])
})
