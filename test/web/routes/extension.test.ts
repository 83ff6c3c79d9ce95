import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { testConfig, unreachableIdp } from '../../helpers/config.js'
import { runCommand } from '../../helpers/run-command.js'
import { startTestServer } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'

async function startWith(t: ExecutionContext, text: string) {
  const folder = await tempFolder(t, { 'routes.mjs': text })
  const path = join(folder, 'routes.mjs')
  return { path, starting: startTestServer(t, { mode: 'dual', settings: { extension: path } }) }
}

// Starts a server, waits half a second or until koa-session is loaded, and prints whether it is.
const program = `
import { createRequire } from 'node:module'
import { serve } from '#src/server/serve.js'
// koa-session is the only package that imports crc, which is a CommonJS module.
const isLoaded = () => Object.keys(createRequire(import.meta.url).cache).some(file => /node_modules.crc/.test(file))
await serve(JSON.parse(process.argv[1]))
for (let tenths = 0; tenths < (process.argv[2] ? 600 : 5) && !isLoaded(); tenths++) {
  await new Promise(resolve => setTimeout(resolve, 100))
}
console.log(isLoaded())
process.exit()
`

test('what custom routes need is loaded before the first request, and only if there may be some', async t => {
  const extension = join(await tempFolder(t, { 'routes.mjs': 'export default () => {}' }), 'routes.mjs')
  for (const path of [undefined, extension]) {
    const config = testConfig(unreachableIdp, { extension: path })
    const args = ['--input-type=module', '-e', program, JSON.stringify(config), ...(path ? [path] : [])]
    const { stdout } = await runCommand([process.execPath, ...args])
    t.is(stdout.trim().split('\n').at(-1), String(path !== undefined))
  }
})

const runsTypeScript = 'typescript' in process.features && Boolean(process.features.typescript)

test('a module in TypeScript runs if Node can strip its types, and otherwise the message says what to do', async t => {
  const source = 'import { hub } from "./hub.ts"\nexport default (app: object): void => void { app, hub }\n'
  const folder = await tempFolder(t, {
    'routes.ts': source,
    'routes.mjs': source.replace(': object', '').replace(': void', ''),
    'hub.ts': 'export const hub: number = 1\n'
  })
  for (const name of ['routes.ts', 'routes.mjs']) {
    const starting = startTestServer(t, { settings: { extension: join(folder, name) } })
    const message = /\(setting extension\) needs TypeScript, which Node .* cannot run\. Use Node 22\.18/
    if (runsTypeScript) await t.notThrowsAsync(starting)
    else await t.throwsAsync(starting, { name: 'ExtensionError', message })
  }
})

const broken: readonly (readonly [text: string, says: RegExp])[] = [
  [
    'export const routes = 1',
    /no function as its default export. It exports routes. Export one: export default function/
  ],
  ['export default { routes: 1 }', /has no function as its default export. It exports default, routes. /],
  ['const a = 1', /has no function as its default export. It exports nothing. /],
  ["\nthrow new Error('no hubs today')", /cannot be run: Error: no hubs today \(line 2\)$/],
  ["\nthrow new SyntaxError('of a template')", /cannot be run: SyntaxError: of a template \(line 2\)$/],
  ["import 'not-there'", /cannot be run: Error: Cannot find package 'not-there'/],
  [
    'export default function (app) {\n  app.use(\n}',
    /cannot be run: SyntaxError: .* To see the file and the line, run: node \/.*\.mjs$/
  ],
  ["throw 'text'", /cannot be run: text$/],
  ['export default async () => {\n  nothing()\n}', /failed: ReferenceError: nothing is not defined \(line 2\)$/]
]

for (const [text, says] of broken) {
  test(`if a module cannot be used, the server does not start, and the error says why: ${text}`, async t => {
    const { path, starting } = await startWith(t, text)
    const error = await t.throwsAsync(starting, { name: 'ExtensionError', message: says })
    t.true(error?.message.startsWith(`${path} (setting extension) `))
  })
}

const compiled: Readonly<Record<string, string>> = {
  'TypeScript, Babel':
    '"use strict"; Object.defineProperty(exports, "__esModule", { value: true }); exports.default = addRoutes;',
  esbuild:
    'module.exports = Object.defineProperties({}, { __esModule: { value: true }, default: { get: () => addRoutes, enumerable: true } });',
  'without a mark': 'exports.default = addRoutes;',
  CommonJS: 'module.exports = addRoutes;'
}
for (const [what, text] of Object.entries(compiled)) {
  test(`a module that was compiled to CommonJS is loaded: ${what}`, async t => {
    const source = `${text} function addRoutes(app, { log }) { log.info('x'); app.use((ctx, next) => ctx.path === '/x' ? ctx.body = 'x' : next()) }`
    const folder = await tempFolder(t, { 'routes.cjs': source })
    const { browser } = await startTestServer(t, { settings: { extension: join(folder, 'routes.cjs') } })
    t.is((await browser.get('/x')).text(), 'x')
  })
}
