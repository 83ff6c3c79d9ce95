import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { createBrowser } from '../helpers/browser.js'
import { defaultCallbackUrl, unreachableIdp } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { carries } from '../helpers/messages.js'
import { defaultCommand, environmentWithEndpoints, startProgram } from '../helpers/program.js'
import { packageJson, readText } from '../helpers/repository.js'
import { testWhere } from '../helpers/requirement.js'
import { runCommand } from '../helpers/run-command.js'
import { openCallback } from '../helpers/server.js'
import { signInAtDemo } from '../helpers/sign-in.js'
import { tempFolder } from '../helpers/temp-folder.js'

const program = fileURLToPath(new URL('../../bin/platform-auth-server.js', import.meta.url))

// A device that refuses every write, as a full disk does.
const FULL = '/dev/full'

// Longer than a restart takes on a busy machine.
const SAVE_AGAIN_MS = 15_000

// A demo takes a second longer to start, so these tests use none.
const idp = { ...unreachableIdp, clientSecret: 'Zx8cVb5nMq1wEr4t', issuer: '' }
const settings = environmentWithEndpoints(idp, defaultCallbackUrl)

/** Starts the program with a module that adds routes. */
async function startWithRoutes(t: ExecutionContext, routes: string, ...args: string[]) {
  const cwd = await tempFolder(t, { 'routes.mjs': routes })
  return startProgram(t, { cwd, args: ['--extension', 'routes.mjs', ...args], env: settings })
}

test('the stack trace of an error in the log names the files of src/', async t => {
  const routes = "export default app => app.use(() => { throw new Error('broken') })"
  const { url, logged } = await startWithRoutes(t, routes)
  t.is((await fetch(`${url}/broken`)).status, 500)
  const { stack } = (await logged('request_failed')).err as { readonly stack: string }
  // Which functions are on the stack depends on the modules that were loaded before the request.
  t.regex(stack, /\/src\/[\w/-]+\.ts:\d+:\d+/)
  t.false(stack.includes('/bundle/'))
})

test("with a demo, sessions, the client secret and a module's routes still work after a reload, and SIGTERM lets requests finish", async t => {
  const routes = `export default (app, { Router }) => {
    const router = new Router()
    router.get('/slow', async ctx => {
      console.log('{"event":"arrived"}')
      await new Promise(resolve => process.once('SIGTERM', () => setImmediate(resolve)))
      ctx.body = 'finished'
    })
    app.use(router.routes())
  }`
  const { url, signal, logged, ended } = await startWithRoutes(t, routes, '--demo')
  const [browser, other] = [createBrowser(t, { origin: url }), createBrowser(t, { origin: url })]
  await openCallback(browser, await signInAtDemo(browser, '/api/auth/login', 'Ada Lovelace'))
  signal('SIGHUP')
  await logged('secrets_reloaded')
  await openCallback(other, await signInAtDemo(other, '/api/auth/login', 'Ada Lovelace'))
  for (const one of [browser, other])
    t.deepEqual((await one.fetch('/api/auth/profile')).json(), { name: 'Ada Lovelace' })
  const answer = fetch(`${url}/slow`)
  await logged('arrived')
  signal('SIGTERM')
  t.is(await (await answer).text(), 'finished')
  t.deepEqual(await ended, { code: 0, signal: null })
})

test('with --watch, a change of a module that adds routes restarts the server, and SIGTERM stops it', async t => {
  const routes = (text: string) => `import { text } from './text.mjs'
export default app => app.use(ctx => { if (ctx.path === '/text') ctx.body = '${text} ' + text })`
  const args = ['--watch', '--extension', 'routes.mjs', '--log-level', 'info']
  const cwd = await tempFolder(t, { 'routes.mjs': '' })
  const child = spawn(process.execPath, [program, ...args], { cwd, env: settings })
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      output[name] += chunk
    })
  }
  const url = () => {
    const line = output.stdout.split('\n').findLast(line => line.includes('"server_started"'))
    return line === undefined ? 'http://127.0.0.1:1' : (JSON.parse(line).url as string)
  }
  // The server cannot be reached during a restart.
  const shown = () => fetch(`${url()}/text`).then(answer => answer.text(), String)
  // Node's watch mode misses a change that is made before it watches the file, which it begins after the program has imported
  // the file. So a file is saved again when its change does not show.
  const save = async (name: string, content: string, expected: string) => {
    let savedAt = Number.NEGATIVE_INFINITY
    await eventually(async () => {
      if (performance.now() > savedAt + SAVE_AGAIN_MS) {
        await writeFile(join(cwd, name), content)
        savedAt = performance.now()
      }
      return (await shown()) === expected
    })
  }
  // The first start fails, because the module exports no function.
  while (!output.stderr.includes('has no function as its default export')) await once(child.stderr, 'data')
  await writeFile(join(cwd, 'text.mjs'), "export const text = 'one'")
  await save('routes.mjs', routes('first'), 'first one')
  await save('text.mjs', "export const text = 'two'", 'first two')
  child.kill('SIGTERM')
  t.deepEqual(await ended, [0, null])
  await t.throwsAsync(fetch(url()), undefined, 'the server has stopped, too')
})

test('a module that throws ends the program with one sentence and exit code 1, and a missing module with exit code 2', async t => {
  const cwd = await tempFolder(t, { 'routes.mjs': 'nothing()' })
  for (const [module, code, message] of [
    ['routes.mjs', 1, 'not start routes.mjs (setting extension) cannot be run'],
    ['rutes.mjs', 2, 'extension (flag --extension) no such file']
  ] as const) {
    const { status, stderr } = await runCommand([...defaultCommand, '--extension', module], { cwd, env: settings })
    t.is(status, code)
    carries(t, stderr, message)
    if (code === 1) t.is(stderr.indexOf('\n'), stderr.length - 1)
  }
})

test('on an old version of Node the program prints one sentence before it loads any other file', async t => {
  const folder = await tempFolder(t, {
    'older.cjs': "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.8' } })"
  })
  // The copy has no dist folder next to it, so loading any other file would fail.
  await mkdir(join(folder, 'bin'))
  const copy = join(folder, 'bin', 'platform-auth-server.mjs')
  await copyFile(program, copy)
  const command = [process.execPath, '--require', join(folder, 'older.cjs'), copy, '--demo']
  const { status, stdout, stderr } = await runCommand(command)
  t.is(status, 1)
  t.is(stdout, '')
  t.is(stderr, 'platform-auth-server needs Node 20.19 or newer; this is 18.20.8.\n')
})

test('the program requires the same version of Node as package.json', t => {
  const [, version = ''] = /needs Node (\S+) or newer/.exec(readText('bin/platform-auth-server.js')) ?? []
  t.is(packageJson.engines.node, `>=${version}`)
})

test('a reader that closes the pipe causes no error message', async t => {
  const command = ['sh', '-c', '{ "$@"; echo "ended with $?" >&2; } | true', 'sh', ...defaultCommand, 'config']
  const { stderr } = await runCommand(command, { cwd: await tempFolder(t), env: {} })
  t.regex(stderr, /ended with 2\n$/)
  t.notRegex(stderr, /EPIPE/)
})

const onFullDisk = testWhere(existsSync(FULL), `no ${FULL}`)

onFullDisk('if the output cannot be written, a command prints the reason and exits with code 1', async t => {
  const cwd = await tempFolder(t)
  for (const args of [['secret'], ['config', '--json'], ['init']]) {
    const command = ['sh', '-c', `exec "$@" </dev/null >${FULL}`, 'sh', process.execPath, program, ...args]
    const { status, stderr } = await runCommand(command, { cwd, env: {} })
    t.is(status, 1, args[0])
    carries(t, stderr, 'output not written ENOSPC')
  }
})

test('if the working directory was deleted, commands that do not need it still work', async t => {
  const command = ['sh', '-c', 'rmdir "$PWD" && exec "$@"', 'sh', process.execPath, program, 'secret']
  const { status, stderr } = await runCommand(command, { cwd: await tempFolder(t) })
  t.deepEqual([status, stderr], [0, ''])
})
