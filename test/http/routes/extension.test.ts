import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { signIn, startTestServer } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'

const routes = `
export default function addRoutes(app, { requireTokens, Router, log }) {
  const router = new Router()
  router.get('/api/whoami', requireTokens, ctx => {
    ctx.body = { internal: ctx.state.tokens.internal.access_token }
  })
  app.use(router.routes())
  log.info({ event: 'routes_added' }, 'routes added')
}
`

async function startWith(t: ExecutionContext, text: string) {
  const folder = await tempFolder(t, { 'routes.mjs': text })
  const path = join(folder, 'routes.mjs')
  return { path, starting: startTestServer(t, { mode: 'dual', overrides: { extend: path } }) }
}

test('a module can add a route that gets the access token for the server, and without a login this route answers 401', async t => {
  const { starting } = await startWith(t, routes)
  const { browser, idp, logs } = await starting
  const refused = await browser.get('/api/whoami')
  t.is(refused.statusCode, 401)
  t.is(refused.text(), '')
  await signIn(browser)
  const { internal } = (await browser.get('/api/whoami')).json() as { internal: string }
  t.true(idp.issued.accessTokens.some(({ value }) => value === internal))
  t.true(logs.entries.some(({ event }) => event === 'routes_added'))
})

test('a module that adds a route does not change the responses of other paths', async t => {
  const { starting } = await startWith(t, routes)
  const { browser } = await starting
  t.is((await browser.get('/')).statusCode, 200)
  const missing = await browser.get('/nothing-here')
  t.is(missing.statusCode, 404)
  t.is((missing.json() as { error: string }).error, 'not_found')
})

const broken: readonly (readonly [text: string, says: RegExp])[] = [
  ['export const routes = 1', /has no function as its default export: export default function/],
  ['export default { routes: 1 }', /has no function as its default export/],
  ["\nthrow new Error('no hubs today')", /cannot be run: Error: no hubs today \(line 2\)$/],
  ["import 'not-there'", /cannot be run: Error: Cannot find package 'not-there'/],
  ["throw 'text'", /cannot be run: text$/],
  ['export default async () => {\n  nothing()\n}', /failed: ReferenceError: nothing is not defined \(line 2\)$/]
]

for (const [text, says] of broken) {
  test(`if a module cannot be used, the server does not start, and the error says why: ${text}`, async t => {
    const { path, starting } = await startWith(t, text)
    const error = await t.throwsAsync(starting, { name: 'ExtensionError', message: says })
    t.true(error?.message.startsWith(`${path} (setting extend) `))
  })
}
