// Opening a file inside a folder, by both ways to find out where the opened file is.
import fs from 'node:fs'
import { mkdir, realpath, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { closeFile, openInside } from '#src/web/static/open-inside.js'
import { replace } from '../../helpers/replace.js'
import { tempFolder } from '../../helpers/temp-folder.js'

for (const hasDescriptorPaths of fs.existsSync('/proc/self/fd') ? [true, false] : [false]) {
  const way = hasDescriptorPaths ? 'by the path of the descriptor' : 'by comparing the file with the path'

  test(`only files inside the folder are opened: ${way}`, async t => {
    const folder = await realpath(
      await tempFolder(t, { 'www/file.txt': 'a', 'www/.env': 'b', 'outside/file.txt': 'c' })
    )
    const root = join(folder, 'www')
    await mkdir(join(root, 'folder'))
    await symlink('file.txt', join(root, 'link.txt'))
    await symlink('../outside', join(root, 'out'))
    await symlink('circle', join(root, 'circle'))
    const open = openInside(root, hasDescriptorPaths)
    for (const name of ['file.txt', 'link.txt']) {
      const file = await open(join(root, name))
      t.is(file?.stats.size, 1, name)
      if (file) closeFile(file.fd)
    }
    for (const name of ['.env', 'out/file.txt', '../outside/file.txt', 'circle', 'missing', 'file.txt/x', 'folder']) {
      t.is(await open(join(root, name)), undefined, name)
    }
  })

  test.serial(`a folder that is swapped just before the opening and back after it is noticed: ${way}`, async t => {
    const folder = await realpath(await tempFolder(t, { 'www/sub/file.txt': 'a', 'outside/file.txt': 'c' }))
    const place = join(folder, 'www/sub')
    const kept = join(folder, 'kept')
    fs.renameSync(place, kept)
    fs.symlinkSync('../outside', place)
    // The status of the opened file is the first that is examined.
    replace(t, fs, 'fstatSync', fstatSync => (...parameters: unknown[]) => {
      if (fs.existsSync(kept)) {
        fs.unlinkSync(place)
        fs.renameSync(kept, place)
      }
      return Reflect.apply(fstatSync, fs, parameters)
    })
    t.is(await openInside(join(folder, 'www'), hasDescriptorPaths)(join(place, 'file.txt')), undefined)
    t.false(fs.existsSync(kept), 'the folder was swapped back')
  })
}

test.serial(
  'files are opened inside the folder also if the system does not know their descriptors, as in a zip archive of Yarn',
  async t => {
    const folder = await realpath(await tempFolder(t, { 'www/file.txt': 'a', 'outside.txt': 'b' }))
    await symlink('../outside.txt', join(folder, 'www/out.txt'))
    replace(t, fs, 'readlinkSync', () => () => {
      throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' })
    })
    const open = openInside(join(folder, 'www'), true)
    const file = await open(join(folder, 'www/file.txt'))
    t.is(file?.path, 'file.txt')
    if (file) closeFile(file.fd)
    t.is(await open(join(folder, 'www/out.txt')), undefined)
  }
)

test.serial('a file that is replaced just after it was opened keeps its path', async t => {
  const folder = await realpath(
    await tempFolder(t, { 'www/file.txt': 'old', 'new.txt': 'new', 'www/a (deleted)': 'b' })
  )
  const path = join(folder, 'www/file.txt')
  replace(t, fs, 'readlinkSync', readlinkSync => (link: string) => {
    if (fs.existsSync(join(folder, 'new.txt'))) fs.renameSync(join(folder, 'new.txt'), path)
    return readlinkSync(link)
  })
  const open = openInside(join(folder, 'www'))
  for (const name of ['file.txt', 'a (deleted)']) {
    const file = await open(join(folder, 'www', name))
    t.is(file?.path, name)
    if (file) closeFile(file.fd)
  }
})
