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

test('imports point one way, packages stay with their owners, and there is no cycle', async t => {
  const sources = await read('src')
  t.true(['app.ts', 'server.ts', 'index.ts', 'config/settings.ts'].every(path => path in sources))
  t.deepEqual(breaches(sources), [])
})

test('nock is imported in one helper', async t => {
  const importers = Object.entries(await read('test')).filter(([, text]) => /(from|import|\() ?'nock'/.test(text))
  t.deepEqual(
    importers.map(([path]) => path),
    ['helpers/nock.ts']
  )
})

// The rules are only worth something if they can be broken: each of these trees breaks one.
const broken: readonly (readonly [what: string, sources: Sources, breach: RegExp])[] = [
  [
    'an arrow that runs back',
    { 'config/a.ts': "import { b } from '../http/b.js'" },
    /^config\/a\.ts .* not a layer below/
  ],
  ['a type taken from above', { 'modes/a.ts': "import type { B } from '../app.js'" }, /not a layer below/],
  ['an arrow over several lines', { 'idp/a.ts': "import {\n  a,\n  b\n} from '../modes/b.js'" }, /not a layer below/],
  ['a re-export from above', { 'login/a.ts': "export * from '../http/b.js'" }, /not a layer below/],
  ['a bare import from above', { 'login/a.ts': "import '../http/b.js'" }, /not a layer below/],
  ['a late import from above', { 'session/a.ts': "const b = await import('../http/b.js')" }, /not a layer below/],
  ['a type in brackets from above', { 'login/a.ts': "let b: import('../http/b.js').B" }, /not a layer below/],
  [
    'an import by our own alias from above',
    { 'login/a.ts': "import { b } from '#src/http/b.js'" },
    /not a layer below/
  ],
  ['neighbours that know each other', { 'login/a.ts': "import { b } from '../session/b.js'" }, /not a layer below/],
  ['a file without a place', { 'utils/a.ts': 'export const a = 1' }, /^utils\/a\.ts has no place/],
  ['a demo that is always loaded', { 'open-demo.ts': "import { startDemo } from './demo/index.js'" }, /demo is loaded/],
  ['a demo that others load', { 'app.ts': "const d = await import('./demo/index.js')" }, /demo is loaded/],
  ['a demo that leans on the server', { 'demo/a.ts': "import { b } from '../app.js'" }, /demo stands alone/],
  ['got outside the provider client', { 'modes/a.ts': "import got from 'got'" }, /imports got: only idp/],
  ['got loaded late elsewhere', { 'http/a.ts': "const { got } = await import('got')" }, /imports got/],
  ['koa below http', { 'session/a.ts': "import type { Context } from 'koa'" }, /imports koa/],
  ["koa's session below http", { 'session/a.ts': "import s from 'koa-session'" }, /imports koa-session/],
  ["koa's router in the server", { 'server.ts': "import R from '@koa/router'" }, /imports @koa\/router/],
  ['Redis outside coordination', { 'services.ts': "import { Redis } from 'ioredis'" }, /imports ioredis/],
  ['the environment read in the app', { 'app.ts': 'const home = process.env.HOME' }, /reads the environment/],
  ['the environment imported', { 'app.ts': "import { env } from 'node:process'" }, /reads the environment/],
  ['the environment taken apart', { 'app.ts': 'const { env } = process' }, /reads the environment/],
  [
    'an HTTP error made in auth',
    { 'auth/a.ts': "import { HttpError } from '../http/http-error.js'" },
    /not a layer below/
  ],
  [
    'a context among the helpers',
    { 'support/a.ts': 'export const a = (ctx: Context) => ctx.path' },
    /knows a Koa context/
  ],
  ['a helper that knows the program', { 'support/a.ts': "import { b } from '../config/b.js'" }, /not a layer below/],
  ['a context below http', { 'modes/a.ts': 'export const a = (ctx: Context) => ctx.session' }, /knows a Koa context/],
  [
    'a cycle inside a folder',
    { 'http/a.ts': "import './b.js'", 'http/b.ts': "import './c.js'", 'http/c.ts': "import './a.js'" },
    /^a cycle: http\/a\.ts > http\/b\.ts > http\/c\.ts > http\/a\.ts$/
  ]
]

for (const [what, sources, breach] of broken) {
  test(`the rules notice ${what}`, t => {
    const found = breaches(sources)
    t.is(found.length, 1, found.join('\n'))
    t.regex(found[0] ?? '', breach)
  })
}

test('the rules leave good code alone', t => {
  const sources: Sources = {
    'cli/start.ts': 'process.env.PORT',
    'open-demo.ts': "import type { Demo } from './demo/index.js'\nconst demo = await import('./demo/index.js')",
    'demo/index.ts': "import type Koa from 'koa'\nimport { renderPage } from '../pages/page.js'",
    'http/login.ts':
      "import type { Context } from 'koa'\nimport { a } from '../login/a.js'\nctx.body = { accept: '*/*' }",
    'login/a.ts':
      "// import '../app.js', process.env and ctx may be spoken of\n/* import('../http/b.js') */\nimport 'node:crypto'",
    'idp/client.ts': "import got from 'got'\nconst address = 'https://idp.example'\nconst contexts = 1"
  }
  t.deepEqual(breaches(sources), [])
})
