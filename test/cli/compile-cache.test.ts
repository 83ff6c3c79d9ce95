import { chmod, chown, mkdir, readdir, realpath, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { type CompileCache, enableCompileCache, saveCompiledModules } from '#src/cli/compile-cache.js'
import { testWhere } from '../helpers/requirement.js'
import { tempFolder } from '../helpers/temp-folder.js'

const hasPermissionBits = process.platform !== 'win32'
const testPermissions = (title: string, body: (t: ExecutionContext) => Promise<void>) =>
  testWhere(hasPermissionBits, 'Windows has no permission bits', title, body)
// Only root may give a folder to another user.
const testOwners = (title: string, body: (t: ExecutionContext) => Promise<void>) =>
  testWhere(process.geteuid?.() === 0, 'needs root', title, body)
const NOBODY = 65534

/** A stand-in for Node's module API that records the cache folders. */
function nodeWithCache() {
  const folders: (string | undefined)[] = []
  const node: CompileCache = {
    enableCompileCache(folder) {
      folders.push(folder)
    }
  }
  return { node, folders }
}

test('the compile cache is in the home folder, and only its owner may write to it', async t => {
  const home = await realpath(await tempFolder(t, {}))
  const { node, folders } = nodeWithCache()
  enableCompileCache({}, node, () => home)
  enableCompileCache({}, node, () => home)
  const folder = join(home, '.cache/platform-auth-server')
  t.deepEqual(folders, [folder, folder])
  t.is((await stat(folder)).mode & 0o777, 0o700)
})

test('if a variable of Node configures its compile cache, the program does not change it', async t => {
  const home = await tempFolder(t, {})
  for (const name of ['NODE_COMPILE_CACHE', 'NODE_DISABLE_COMPILE_CACHE']) {
    const { node, folders } = nodeWithCache()
    enableCompileCache({ [name]: '1' }, node, () => home)
    t.deepEqual(folders, [], name)
  }
  t.deepEqual(await readdir(home), [])
})

test('without a usable home folder the program runs without a compile cache', async t => {
  const home = await tempFolder(t, { file: '' })
  const { node, folders } = nodeWithCache()
  for (const path of [join(home, 'missing'), join(home, 'file'), '/proc/missing']) {
    enableCompileCache({}, node, () => path)
  }
  enableCompileCache({}, node, () => {
    throw new Error('no home')
  })
  t.deepEqual(folders, [])
  t.deepEqual(await readdir(home), ['file'])
})

test('a Node version without a compile cache starts the program', async t => {
  const home = await tempFolder(t, {})
  t.notThrows(() => {
    enableCompileCache({}, {}, () => home)
    saveCompiledModules({})
  })
  t.deepEqual(await readdir(home), [])
})

/** Returns the folders of the caches that the program enables in a home folder, which is `outer/home` in a new folder. */
async function cachesIn(t: ExecutionContext, prepare: (outer: string) => Promise<unknown>) {
  const folder = await realpath(await tempFolder(t, {}))
  const outer = join(folder, 'outer')
  await mkdir(join(outer, 'home/.cache/platform-auth-server'), { recursive: true })
  for (const path of ['', 'home', 'home/.cache', 'home/.cache/platform-auth-server'])
    await chmod(join(outer, path), 0o755)
  await prepare(outer)
  const { node, folders } = nodeWithCache()
  enableCompileCache({}, node, () => join(outer, 'home'))
  return folders.map(path => path?.replace(`${folder}/`, ''))
}

const places = ['home/.cache/platform-auth-server', 'home/.cache', 'home', '.']

for (const place of places) {
  for (const mode of [0o775, 0o757]) {
    testPermissions(`a compile cache is not used if others may write to ${place} (${mode.toString(8)})`, async t => {
      t.deepEqual(await cachesIn(t, outer => chmod(join(outer, place), mode)), [])
    })
  }

  testOwners(`a compile cache is not used if ${place} belongs to another user`, async t => {
    t.deepEqual(await cachesIn(t, outer => chown(join(outer, place), NOBODY, NOBODY)), [])
  })
}

testPermissions(
  'a compile cache is used if nobody else may write to it, in a shared folder with the sticky bit',
  async t => {
    t.deepEqual(await cachesIn(t, outer => chmod(outer, 0o1777)), ['outer/home/.cache/platform-auth-server'])
  }
)

testPermissions('the sticky bit does not make the folder of the compile cache private', async t => {
  for (const place of places.slice(0, 2)) t.deepEqual(await cachesIn(t, outer => chmod(join(outer, place), 0o1777)), [])
})

testPermissions('nothing is created through a link in a home folder to which others may write', async t => {
  const folder = await realpath(await tempFolder(t, {}))
  await mkdir(join(folder, 'target'))
  await mkdir(join(folder, 'home'))
  await symlink('../target', join(folder, 'home/.cache'))
  await chmod(join(folder, 'home'), 0o777)
  const { node, folders } = nodeWithCache()
  enableCompileCache({}, node, () => join(folder, 'home'))
  t.deepEqual(folders, [])
  t.deepEqual(await readdir(join(folder, 'target')), [])
})

testPermissions('a link to a compile cache is judged by the folder that it leads to', async t => {
  const linked = async (mode: number) => {
    const folder = await realpath(await tempFolder(t, {}))
    await mkdir(join(folder, 'home'), { mode: 0o755 })
    await mkdir(join(folder, 'disk/cache'), { recursive: true, mode: 0o755 })
    await chmod(join(folder, 'disk'), mode)
    await symlink('../disk/cache', join(folder, 'home/.cache'))
    const { node, folders } = nodeWithCache()
    enableCompileCache({}, node, () => join(folder, 'home'))
    return folders.map(path => path?.replace(`${folder}/`, ''))
  }
  t.deepEqual(await linked(0o755), ['disk/cache/platform-auth-server'])
  t.deepEqual(await linked(0o777), [])
})
