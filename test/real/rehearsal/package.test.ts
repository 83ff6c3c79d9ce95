import { spawnSync } from 'node:child_process'
import { cp, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { createBrowser } from '../../helpers/browser.js'
import { compile, programThatUsesTypes } from '../../helpers/compile.js'
import { defaultCallbackUrl, publicOrigin } from '../../helpers/config.js'
import { createHostileIdp } from '../../helpers/hostile-idp/index.js'
import { isSkippedWithoutRegistry, linkTypes, packInto } from '../../helpers/packed.js'
import { environmentFor, type Program, startProgram } from '../../helpers/program.js'
import { readText, repository } from '../../helpers/repository.js'
import { signIn } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'

// Packs the source, installs the package in an empty folder and runs it there, as a new operator does.

function run(command: readonly string[], cwd: string) {
  const [file = '', ...args] = command
  const { status, stdout, stderr } = spawnSync(file, args, { cwd, encoding: 'utf8' })
  return { status, stdout, stderr, all: `${command.join(' ')}: ${stdout}${stderr}` }
}

/** A copy of the repository as it is checked out, without build results. The files with secrets must not be packed. */
async function checkedOut(t: ExecutionContext): Promise<string> {
  const folder = await tempFolder(t, { 'deploy/secrets/session_secret': 'nobody', 'deploy/server.env': 'nobody' })
  const left = new Set(['node_modules', 'dist', 'dist-test', 'coverage', '.git'])
  for (const name of await readdir(repository)) {
    if (!left.has(name)) await cp(join(repository, name), join(folder, name), { recursive: true })
  }
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

async function packed(t: ExecutionContext): Promise<string> {
  const source = await checkedOut(t)
  const tarball = packInto(source, source, [])
  const listed = run(['tar', '-tzf', tarball], source).stdout.split('\n')
  t.true(listed.includes('package/dist/bundle/main.js'), 'npm pack builds the package')
  const secrets = listed.filter(path => /secrets\/|\/\.env|deploy\/server\.env/.test(path))
  t.deepEqual(secrets, [], 'the package contains no secrets')
  t.log(`${listed.length - 1} files, ${(await stat(tarball)).size} bytes packed`)
  return tarball
}

/**
 * An empty folder in which the package is installed with the command in the systemd unit, or undefined if no package registry can be
 * reached.
 */
async function installed(t: ExecutionContext): Promise<string | undefined> {
  const tarball = await packed(t)
  const folder = await tempFolder(t)
  const started = performance.now()
  const [line = ''] = /npm install .*/.exec(readText('deploy/platform-auth-server@.service')) ?? []
  const words = line.replace('/opt/platform-auth-server', folder).split(' ')
  const { status, all } = run([...words, '--no-audit', '--no-fund', '--prefer-offline'], dirname(tarball))
  if (status !== 0 && isSkippedWithoutRegistry(t, all)) return undefined
  t.is(status, 0, all)
  const packages = (await readdir(join(folder, 'node_modules'))).length
  t.log(`installed in ${((performance.now() - started) / 1000).toFixed(1)} s, ${packages} folders`)
  return folder
}

async function usable(t: ExecutionContext, { url }: Program) {
  const browser = createBrowser(t, { origin: publicOrigin, connectTo: { [publicOrigin]: url } })
  t.is((await browser.navigate('/')).statusCode, 200)
  await signIn(browser)
  t.deepEqual((await browser.fetch('/api/auth/profile')).json(), { name: 'Ada Lovelace' })
  t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  t.is((await browser.navigate('/api/auth/logout')).statusCode, 302)
}

test('the package, installed in an empty folder, runs with npx and can be imported with its types', async t => {
  const folder = await installed(t)
  if (folder === undefined) return
  const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
  const environment = environmentFor(idp, defaultCallbackUrl)
  const npx = ['npx', '--offline', 'platform-auth-server']
  await writeFile(join(folder, 'platform-auth-server.config.yaml'), 'mode: dual\n')
  const started = performance.now()
  const ofNpx = await startProgram(t, { command: npx, env: environment, cwd: folder, group: true })
  t.log(`listening after ${Math.round(performance.now() - started)} ms`)
  await usable(t, ofNpx)
  ofNpx.signal('SIGINT')
  await ofNpx.ended
  t.notRegex(ofNpx.stderr(), /platform-auth-server|\n\s+at /)

  // A supervisor starts the program with node, because npx does not forward signals.
  const command = [process.execPath, 'node_modules/platform-auth-server/bin/platform-auth-server.js']
  const program = await startProgram(t, { command, env: environment, cwd: folder })
  program.signal('SIGTERM')
  t.deepEqual(await program.ended, { code: 0, signal: null })

  await writeFile(join(folder, 'use.mts'), programThatUsesTypes)
  await linkTypes(join(folder, 'node_modules'))
  const compiled = await compile(folder, ['use.mts'])
  t.is(compiled.status, 0, compiled.output)

  const imported = run([process.execPath, '--input-type=module', '--eval', printing], folder)
  t.is(imported.stdout, 'function function function ConfigError object\n', imported.all)
})

const printing = `
import { createApp, requireTokens, startServer, ConfigError } from 'platform-auth-server'
import schema from 'platform-auth-server/schema.json' with { type: 'json' }
console.log(typeof createApp, typeof requireTokens, typeof startServer, ConfigError.name, schema.type)
`
