// Checks every block of code in the README and in docs/, most of them by running it as written. A block of an unknown
// kind fails the first test.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text as streamText } from 'node:stream/consumers'
import { parseEnv } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { build } from 'rolldown'
import { main } from '#src/cli/main.js'
import { loadConfig } from '#src/config/load.js'
import { type SettingKey, settingOf } from '#src/config/settings.js'
import { ConfigError } from '#src/config/types/problem.js'
import { readPagesFolder } from '#src/pages/index.js'
import { shell } from '../cli/shell.js'
import { load } from '../config/given.js'
import { defaultCallbackUrl, publicOrigin } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { fencedBlocks, linesOf } from '../helpers/markdown.js'
import { folderWithPackage } from '../helpers/packed.js'
import { freePort } from '../helpers/ports.js'
import { environmentFor } from '../helpers/program.js'
import { filesBelow, packageJson, readText, repository, textBelow } from '../helpers/repository.js'
import { signIn, startTestServer } from '../helpers/server.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { startUpstream } from '../helpers/upstream.js'
import { documentedUser } from '../sessions/rights.js'

const paths = ['README.md', ...filesBelow('docs').filter(path => path.endsWith('.md'))]
const blocks = paths.flatMap(path => fencedBlocks(readText(path)).map(block => ({ path, ...block })))

function kindOf({ path, language, text }: { path: string; language: string; text: string }) {
  if (language === 'sh') return /^[A-Z_]+=/.test(text) ? 'variables' : 'shell'
  // Settings of an identity provider. test/real/providers/ starts the providers with the same settings.
  if (language === 'python' || (language === 'yaml' && text.startsWith('staticClients:'))) return 'provider'
  // The server.env of the Compose sample, and values of the Helm chart. test/docs/one-machine.test.ts tests them.
  if (language === 'ini' || (language === 'yaml' && text.trimStart().startsWith('image:'))) return 'steps'
  if (language === 'yaml') return 'settings'
  // Configurations of bundlers. `npm run test:clients` uses them.
  if (path === 'docs/pages/bundlers.md' && language !== 'sh' && language !== 'yaml' && !text.includes('/client'))
    return 'bundler'
  // test/browser/client.test.ts opens a page with this block.
  if (language === 'html' && text.includes('beforesignin')) return 'draft'
  // A text and a template of the error pages.
  if (language === 'html' || (language === 'json' && text.includes('accountNotAllowed'))) return 'pages'
  if (language === '' && /^(ok|warning|failed) /.test(text)) return 'findings'
  if (language === '' && /^(user auth|maxmemory) /.test(text)) return 'redis'
  if (language === 'dockerfile') return 'image'
  // Parts of the configuration of a reverse proxy. `npm run test:gateways` runs them.
  if (['apache', 'haproxy', 'lighttpd'].includes(language)) return 'gateway'
  if (language === 'jsx') return 'component'
  if (language !== 'js') return undefined
  if (text.includes('Autodesk.Viewing')) return 'viewer'
  if (/^export default function/m.test(text)) return 'module'
  if (text.includes("from 'platform-auth-server/testing'")) return 'test'
  return /from 'platform-auth-server'/.test(text) ? 'program' : 'page'
}

function blocksOf(kind: ReturnType<typeof kindOf>) {
  return blocks.filter(block => kindOf(block) === kind)
}

/** A module's name is in its first comment. */
function nameOf(text: string): string {
  return /^\/\/ (\S+)/.exec(text)?.[1] ?? 'unnamed.mjs'
}

/** The files of all modules. */
const modules = Object.fromEntries(blocksOf('module').map(({ text }) => [nameOf(text), text]))

const title = ({ path, text }: { path: string; text: string }) =>
  `${path}: ${linesOf(text).find(line => !line.includes('/client'))}`

test('every block of code is of a kind that this file tests', t => {
  const unknown = blocks.filter(block => kindOf(block) === undefined)
  t.deepEqual(unknown, [])
  for (const kind of ['shell', 'variables', 'settings', 'module', 'program', 'page', 'viewer', 'component'] as const)
    t.true(blocksOf(kind).length > 0, kind)
})

const commandLines = blocksOf('shell').flatMap(({ path, text }) =>
  linesOf(text.replace(/ *\\\n/g, '')).map(line => ({ path, text: line.replace(/ *#.*$/, '') }))
)
const own = /^npx platform-auth-server\b(?! sessions)/
const npm = /^npm (run [\w:]+|test|ci)\b/
// These commands need Docker, a cluster, systemd, Hydra or Redis. test/cli/sessions.test.ts runs `sessions`. test/deploy/ and test/real/rehearsal/ test the files that they
// use. test/docs/one-machine.test.ts runs the commands that create secrets.
const elsewhere =
  /^[()]$|^(npx platform-auth-server sessions|docker|kubectl|helm|cd|env|nginx|hydra|curl|mkdir|read|openssl|touch|echo|sudo|password=\$\(openssl) /
// The optional packages, which are development dependencies of this repository.
const optional = /^npm install @opentelemetry\/sdk-node$/

test('every line of a shell block is tested in this file or needs a tool that is not installed here', t => {
  const lines = commandLines.map(({ text }) => text).filter(text => text !== '')
  const unknown = lines.filter(
    text => !own.test(text) && !npm.test(text) && !elsewhere.test(text) && !optional.test(text)
  )
  t.deepEqual(unknown, [])
})

for (const line of commandLines.filter(({ text }) => npm.test(text))) {
  test(`the npm scripts exist: ${title(line)}`, t => {
    for (const command of line.text.split(' && ')) {
      const [, verb = '', name = verb] = command.split(' ')
      t.true(verb === 'ci' || name in packageJson.scripts, command)
    }
  })
}

for (const line of commandLines.filter(({ text }) => own.test(text))) {
  test(`the command line works: ${title(line)}`, async t => {
    const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
    // Words, and texts in single quotes.
    const args = (line.text.replace(own, '').match(/'[^']*'|\S+/g) ?? []).map(word => word.replace(/^'|'$/g, ''))
    // The port of the text may be taken on this machine.
    const free = { '--port': '0', '--forward-auth-address': '127.0.0.1:0' }
    for (const [name, value] of Object.entries(free)) if (args.includes(name)) args[args.indexOf(name) + 1] = value
    const console = await shell(t, args, { env: environmentFor(idp, defaultCallbackUrl), files: modules })
    const ended = main(console.terminal)
    if (args[0]?.startsWith('--')) {
      await Promise.race([ended, eventually(() => console.log().some(({ event }) => event === 'server_started'))])
      console.signals.emit('SIGTERM')
    }
    t.is(await ended, 0, console.output() + console.errors())
  })
}

for (const block of blocksOf('variables')) {
  test(`the server accepts these variables once the placeholders are replaced: ${title(block)}`, async t => {
    // The pages of the providers leave out the secrets, because these are files in most deployments.
    const isOfProvider = block.path.startsWith('docs/reference/providers/')
    const text = isOfProvider
      ? `${block.text}\nSERVER_SESSION_SECRET=the-secret\nPLATFORM_CLIENT_SECRET=the-secret\n`
      : block.text
    const variables = parseEnv(text)
    const asWritten = await tempFolder(t, { '.env': text })
    const error = await t.throwsAsync(loadConfig({ env: {}, cwd: asWritten }), { instanceOf: ConfigError })
    const placeholders = error?.problems.map(({ key }) => settingOf(key as SettingKey).env) ?? []
    t.true(placeholders.includes('SERVER_SESSION_SECRET'))
    const replace = (text: string, name: string) =>
      text.replace(`${name}=${variables[name]}`, `${name}=wG4vT9qLx2ZbN7rKp5YcJ8sHd3MfA6eU`)
    const files = { '.env': placeholders.reduce(replace, text) }
    const { config, warnings } = await loadConfig({
      env: { PLATFORM_AUTH_ACCESS_ALLOW: '*' },
      cwd: await tempFolder(t, files)
    })
    t.is(config.platform.callbackUrl, String(variables.PLATFORM_CALLBACK_URL))
    t.deepEqual(warnings, [])
  })
}

for (const block of blocksOf('settings')) {
  test(`the server takes this settings file: ${title(block)} … ${linesOf(block.text).at(-1)}`, async t => {
    // Files in the folder of pages that the block mentions.
    const design = { 'logo.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>', 'pages/de.json': '{}' }
    const ofVite = { 'dist/index.html': '', 'dist/assets/app.js': '' }
    const built = { ...ofVite, 'dist/browser/index.html': '', 'out/_next/static/app.js': '' }
    const pages = { ...built, 'wwwroot/welcome.html': '', 'wwwroot/welcome/page.css': '', ...design }
    const { warnings } = await load(t, { files: { ...pages, 'platform-auth-server.config.yaml': block.text } })
    t.deepEqual(warnings, [])
  })
}

test('the templates and texts can be used', async t => {
  const used = blocksOf('pages')
  const languages = used.map(({ language }) => language)
  t.deepEqual(languages, ['json', 'html'])
  for (const { language, text } of used) {
    const folder = await tempFolder(t, { [language === 'json' ? 'en.json' : 'page.html']: text })
    t.notThrows(() => readPagesFolder(folder), text)
  }
})

const sourcesOfCheck = textBelow('src/cli/check')

for (const block of blocksOf('findings')) {
  test(`check can print lines that begin like these: ${title(block)}`, t => {
    for (const line of linesOf(block.text)) {
      const [, status = '', check = '', start = ''] = /^(.{9})(.{11})(\S+ \S+ \S+)/.exec(line) ?? []
      t.regex(status, /^(ok|warning|failed) +$/, line)
      t.regex(sourcesOfCheck, new RegExp(`'${check.trim()}'`), line)
      // The source contains a placeholder for the provider's name.
      t.true(sourcesOfCheck.includes(start.replace(/^Keycloak .*/, 'Keycloak')), line)
    }
  })
}

for (const block of blocksOf('redis')) {
  test(`the Redis settings are those of the tests and of deploy/compose.yaml: ${title(block)}`, t => {
    const isUser = block.text.startsWith('user ')
    const command = readText('deploy/compose.yaml').replaceAll('", "', ' ')
    // test/sessions/redis-rights.test.ts starts Redis with this line.
    if (isUser) t.is(block.text.trim(), documentedUser.join(' '))
    else for (const line of linesOf(block.text)) t.true(command.includes(`--${line}`), line)
  })
}

for (const block of blocksOf('image')) {
  test(`the Dockerfile extends the image of this version, and copies into its working folder or installs an optional package: ${title(block)}`, t => {
    const [from, ...steps] = linesOf(block.text)
    t.is(from, `FROM platform-auth-server:${packageJson.version}`)
    t.true(steps.length > 0)
    if (steps.includes('USER root')) {
      const [, install = '', user] = steps
      t.regex(install.replace('RUN ', '').replace('--prefix / ', ''), optional)
      t.is(user, 'USER 1000')
    } else for (const line of steps) t.regex(line, /^COPY [\w.]+ \.\/\w*$/)
    t.regex(readText('deploy/Dockerfile'), /^WORKDIR \/app$/m)
  })
}

for (const block of blocksOf('module')) {
  test.serial(`the module adds one route: ${title(block)}`, async t => {
    const folder = await tempFolder(t, { [nameOf(block.text)]: block.text })
    const extension = join(folder, nameOf(block.text))
    const [, route = ''] = /router\.get\('([^']+)'/.exec(block.text) ?? []
    const { browser, idp } = await startTestServer(t, { mode: 'dual', settings: { extension } })
    const asked: (string | null)[] = []
    replaceFetch(t, async (_url, init) => {
      asked.push(new Headers(init?.headers).get('authorization'))
      return Response.json({ data: ['a hub'] })
    })
    t.is((await browser.get(route)).statusCode, 401)
    t.is((await browser.get('/nothing-here')).statusCode, 404)
    await signIn(browser)
    t.deepEqual((await browser.get(route)).json(), { data: ['a hub'] })
    t.true(idp.issued.accessTokens.some(({ value }) => asked[0] === `Bearer ${value}`))
    t.is((await browser.get('/nothing-here')).statusCode, 404)
  })
}

for (const block of blocksOf('program')) {
  test(`the program serves requests until it is stopped: ${title(block)}`, async t => {
    const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
    const cwd = await folderWithPackage(t, { ...modules, 'program.mjs': block.text })
    const PORT = String(await freePort())
    const env = { ...environmentFor(idp, defaultCallbackUrl), PORT }
    const program = spawn(process.execPath, ['program.mjs'], { cwd, env, stdio: 'inherit' })
    t.teardown(() => program.kill('SIGKILL'))
    const ended = once(program, 'exit')
    const status = (path: string) =>
      fetch(`http://127.0.0.1:${PORT}${path}`).then(
        answer => answer.status,
        () => undefined
      )
    await eventually(async () => (await status('/readyz')) === 200 || program.exitCode !== null)
    t.is(await status('/api/hubs'), 401)
    t.is(await status('/nothing-here'), 404)
    program.kill('SIGTERM')
    t.deepEqual(await ended, [0, null])
  })
}

test('the tests of an application pass', async t => {
  const tests = blocksOf('test').map(({ text }, index) => [`${index}.test.mjs`, text] as const)
  const all = tests.map(([name]) => `import './${name}'`).join('\n')
  const cwd = await folderWithPackage(t, { ...modules, ...Object.fromEntries(tests), 'all.test.mjs': all })
  const run = spawn(process.execPath, ['--test-reporter=tap', 'all.test.mjs'], { cwd })
  const output = await streamText(run.stdout)
  t.regex(output, /^# fail 0$/m, output)
  for (const [, name] of tests.flatMap(([, text]) => [...text.matchAll(/^test\('([^']+)'/gm)]))
    t.true(output.includes(`- ${name}\n`), name)
})

for (const block of blocksOf('page')) {
  test.serial(
    `the page's code redirects to the login with its own URL, and after the login it gets a response: ${title(block)}`,
    async t => {
      const upstream = await startUpstream(t)
      const rules = ['GET /api/hubs/**', 'GET,POST /api/issues/**'].map(rule => `${rule} ${upstream.origin}/**`)
      const { browser } = await startTestServer(t, { mode: 'dual', settings: { apiProxy: { rules } } })
      const places: string[] = []
      const go = (place: string) => void places.push(place)
      const { href, pathname, search, hash } = new URL(`${publicOrigin}/viewer?urn=abc`)
      const location = { href, pathname, search, hash, replace: go, assign: go }
      Object.assign(globalThis, { location })
      // The query makes a new copy of the module, which has a state.
      const client = await import(`${repository}src/pages/client/client.js?${title(block)}`)
      const answers: number[] = []
      replaceFetch(t, async url => {
        const { statusCode, text, headers } = await browser.fetch(String(url))
        answers.push(statusCode)
        const sent = ['content-type', 'session-status'].map(
          name => [name, String(headers[name] ?? '')] as [string, string]
        )
        return new Response(text(), { status: statusCode, headers: sent })
      })
      const code = block.text.replace(/^import (\{.*\}) from '[^']+\/client(\.js)?'$/m, 'const $1 = client')
      // The code runs as a module of a page, in which `await` is allowed at the top level.
      const document = { body: { append: () => {} } }
      const body = `return (async () => { ${code} })()`
      const run = new Function('location', 'client', 'document', body) as (
        place: object,
        module: unknown,
        page: object
      ) => Promise<void>
      // A call of the module that opens the login never settles.
      await Promise.race([run(location, client, document), eventually(() => places.length > 0)])
      t.deepEqual(answers, [401])
      t.is(places[0]?.replace(publicOrigin, ''), '/api/auth/login?return_to=%2Fviewer%3Furn%3Dabc')
      await signIn(browser)
      await run(location, client, document)
      t.deepEqual(answers, [401, 200])
      t.is(places.length, 1)
    }
  )
}

for (const block of blocksOf('viewer')) {
  test.serial(`the viewer gets the public token: ${title(block)}`, async t => {
    replaceFetch(t, async () => Response.json({ access_token: 'the-public-token', expires_in: 3000 }))
    Object.assign(globalThis, { location: new URL(`${publicOrigin}/viewer`) })
    const client = await import(`${repository}src/pages/client/client.js?${title(block)}`)
    const code = block.text.replace(/^import (\{.*\}) from '.+'$/m, 'const $1 = client')
    const tokens: unknown[] = []
    const started: unknown[] = []
    type Options = { getAccessToken(callback: (...token: unknown[]) => void): Promise<void> }
    const Viewing = {
      Initializer: async ({ getAccessToken }: Options, ready: () => void) => {
        await getAccessToken((...token) => tokens.push(token))
        ready()
      },
      GuiViewer3D: class {
        start = () => started.push(this)
      }
    }
    new Function('client', 'Autodesk', 'document', code)(client, { Viewing }, { getElementById: () => ({}) })
    await eventually(() => started.length === 1)
    t.deepEqual(tokens, [['the-public-token', 3000]])
  })
}

for (const block of blocksOf('component')) {
  test(`a bundler finds every name that the component imports from the client module: ${title(block)}`, async t => {
    const folder = await tempFolder(t, { 'component.jsx': block.text })
    const { output } = await build({
      input: join(folder, 'component.jsx'),
      external: /^(react(\/|$)|vitest$|@testing-library\/|\.\/account)/,
      resolve: { alias: { 'platform-auth-server/client': `${repository}src/pages/client/client.js` } },
      write: false,
      onLog: (_level, { message }) => t.fail(message)
    })
    t.is(output[0].exports.length > 0, !block.text.includes("from 'vitest'"))
  })
}

// Replaces the global fetch() until the end of the test. Tests that use it are serial.
function replaceFetch(t: ExecutionContext, replacement: typeof fetch) {
  const original = globalThis.fetch
  globalThis.fetch = replacement
  t.teardown(() => {
    globalThis.fetch = original
  })
}
