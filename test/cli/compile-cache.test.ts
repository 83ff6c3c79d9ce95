import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { type CompileCache, enableCompileCache, saveCompiledModules } from '#src/cli/compile-cache.js'
import { tempFolder } from '../helpers/temp-folder.js'

/** A Node that has the cache, and the folders that it was given. */
function nodeWithCache() {
  const folders: (string | undefined)[] = []
  const node: CompileCache = {
    enableCompileCache(folder) {
      folders.push(folder)
    }
  }
  return { node, folders }
}

test('compiled modules are kept in the home folder, where other users cannot put code', async t => {
  const home = await tempFolder(t, {})
  const { node, folders } = nodeWithCache()
  enableCompileCache({}, node, () => home)
  enableCompileCache({}, node, () => home)
  const folder = join(home, '.cache/platform-auth-server')
  t.deepEqual(folders, [folder, folder])
  t.is((await stat(folder)).mode & 0o777, 0o700)
})

test('the variables of Node decide about its cache', async t => {
  const home = await tempFolder(t, {})
  for (const name of ['NODE_COMPILE_CACHE', 'NODE_DISABLE_COMPILE_CACHE']) {
    const { node, folders } = nodeWithCache()
    enableCompileCache({ [name]: '1' }, node, () => home)
    t.deepEqual(folders, [], name)
  }
  t.deepEqual(await readdir(home), [])
})

test('without a usable home folder nothing is cached, and nothing fails', async t => {
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

test('a Node without the cache starts without it', async t => {
  const home = await tempFolder(t, {})
  t.notThrows(() => {
    enableCompileCache({}, {}, () => home)
    saveCompiledModules({})
  })
  t.deepEqual(await readdir(home), [])
})
