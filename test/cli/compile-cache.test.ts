import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { type CompileCache, enableCompileCache, saveCompiledModules } from '#src/cli/compile-cache.js'
import { tempFolder } from '../helpers/temp-folder.js'

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
  const home = await tempFolder(t, {})
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
