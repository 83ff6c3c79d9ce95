import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { createBrowser } from '../../helpers/browser.js'
import { defaultCallbackUrl, publicOrigin } from '../../helpers/config.js'
import { createHostileIdp } from '../../helpers/hostile-idp/index.js'
import { isSkippedWithoutRegistry, packInto } from '../../helpers/packed.js'
import { freePort } from '../../helpers/ports.js'
import { environmentFor, startProgram } from '../../helpers/program.js'
import { readText, repository } from '../../helpers/repository.js'
import { signIn } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { build, type Image, packagesIn, StepFailed } from './dockerfile.js'

// Runs a command as `docker run --read-only` with the image's user does: the file system is read-only and the user is
// not root.
const contained = [
  ...['unshare', '--mount', 'sh', '-c'],
  'mount -o remount,bind,ro / && exec setpriv --reuid 1000 --regid 1000 --clear-groups "$@"',
  'sh'
]
const canContain = spawnSync('unshare', [...contained.slice(1), process.execPath, '--version']).status === 0

/** A checkout that was made with the umask 077. */
async function checkoutForOneUser(t: ExecutionContext): Promise<string> {
  const folder = await tempFolder(t)
  const files = spawnSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: repository,
    encoding: 'utf8'
  }).stdout
  spawnSync('cp', ['--parents', '-t', folder, ...files.trim().split('\n')], { cwd: repository })
  t.is(spawnSync('chmod', ['-R', 'u=rwX,go=', folder]).status, 0)
  return folder
}

/** The folder that `tar -xzf` makes of the packed package, with secrets that an operator has put next to compose.yaml. */
async function unpackedPackage(t: ExecutionContext): Promise<string> {
  const secrets = {
    'package/deploy/secrets/session_secret': 'a secret',
    'package/deploy/server.env': 'A=secret',
    'package/.env': 'A=secret'
  }
  const folder = await tempFolder(t, secrets)
  const unpacked = spawnSync('tar', ['-xzf', packInto(folder)], { cwd: folder, encoding: 'utf8' })
  t.is(unpacked.status, 0, unpacked.stderr)
  return join(folder, 'package')
}

const sources: Readonly<Record<string, (t: ExecutionContext) => Promise<string>>> = {
  'a checkout of the umask 077': checkoutForOneUser,
  'the unpacked package': unpackedPackage
}

for (const [name, sourceOf] of Object.entries(sources)) {
  test(`the Dockerfile builds an image from ${name}, whose server runs as an unprivileged user on a read-only file system`, async t => {
    await rehearse(t, await sourceOf(t))
  })
}

async function rehearse(t: ExecutionContext, source: string): Promise<void> {
  const started = performance.now()
  const folder = await tempFolder(t)
  let image: Image
  try {
    image = await build(source, folder)
  } catch (error) {
    if (error instanceof StepFailed && isSkippedWithoutRegistry(t, error.message)) return
    throw error
  }
  const { workingFolder, env, entrypoint, healthcheck, user } = image
  t.log(`built in ${((performance.now() - started) / 1000).toFixed(1)} s`)
  t.is(user, '1000')
  t.is(env.NODE_ENV, 'production')

  const { dependencies, devDependencies } = JSON.parse(readText('package.json')) as Record<string, object>
  const bytes = spawnSync('du', ['-sk', workingFolder], { encoding: 'utf8' }).stdout.split('\t', 1).join()
  t.log(`${(Number(bytes) / 1024).toFixed(0)} MiB in addition to Node`)
  const packages = await packagesIn(join(workingFolder, 'node_modules'))
  for (const name of Object.keys(dependencies ?? {})) t.true(packages.includes(name), name)
  for (const name of Object.keys(devDependencies ?? {})) {
    // Koa's types depend on other @types packages, so some of these are installed.
    if (!name.startsWith('@types/')) t.false(packages.includes(name), name)
  }
  t.deepEqual((await readdir(workingFolder)).sort(), [
    'bin',
    'config',
    'dist',
    'node_modules',
    'package.json',
    'src',
    'wwwroot'
  ])
  const files = (await readdir(folder, { recursive: true })).filter(path => !path.includes('node_modules/'))
  const secret = files.filter(path => /(^|\/)(secrets|\.env|deploy|test)$/.test(path))
  t.deepEqual(secret, [], 'neither the build nor the image gets secrets')

  const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
  const port = String(await freePort())
  const settings = { ...environmentFor(idp, defaultCallbackUrl), ...env, PORT: port }
  const program = await startProgram(t, {
    command: canContain ? [...contained, ...entrypoint] : entrypoint,
    cwd: workingFolder,
    env: settings
  })
  if (!canContain) t.log('the server ran as the user of the tests, because this machine does not allow another user')
  const browser = createBrowser(t, { origin: publicOrigin, connectTo: { [publicOrigin]: program.url } })
  await signIn(browser)
  t.deepEqual((await browser.fetch('/api/auth/profile')).json(), { name: 'Ada Lovelace' })
  t.is((await browser.navigate('/')).statusCode, 200)
  t.is((await browser.fetch('/api/auth/client.js')).statusCode, 200)

  const [probe = '', ...rest] = healthcheck
  const check = async () => {
    const options = { cwd: workingFolder, env: { PATH: process.env.PATH, ...env, PORT: port } }
    const [code] = await once(spawn(probe, rest, options), 'close')
    return code as number | null
  }
  t.is(await check(), 0)
  program.signal('SIGTERM')
  t.deepEqual(await program.ended, { code: 0, signal: null })
  t.is(program.stderr(), '')
  t.is(await check(), 1)
}
