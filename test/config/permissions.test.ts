// Files and folders that this user may not read, and faults of the installation, are reported as what they are. The tests are
// serial, because the effective user and the working directory belong to the whole process.
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { checkValueAndPath, defaultFolder } from '#src/config/check-value.js'
import { layerOfFile } from '#src/config/file.js'
import { createLoaders } from '#src/config/loaders.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { unprivileged } from '../helpers/unprivileged.js'

test.serial('a working directory that this user may not enter is reported as such', async t => {
  const outer = await tempFolder(t)
  const [cwd, before] = [join(outer, 'inner'), process.cwd()]
  await mkdir(cwd)
  process.chdir(cwd)
  t.teardown(async () => {
    process.chdir(before)
    await chmod(outer, 0o700)
  })
  await chmod(outer, 0)
  const message =
    'cannot be read, because this user may not read it. Start the server in a folder to which this user has access.'
  const { problems, isRead } = await unprivileged(() => layerOfFile(cwd))
  t.deepEqual(problems, [{ key: 'working directory', source: cwd, message }])
  t.false(isRead)
})

test.serial('a part of this program that cannot be loaded is not reported as an unusable settings file', async t => {
  const missing = Object.assign(new Error("Cannot find module 'js-yaml'"), { code: 'MODULE_NOT_FOUND' })
  const loaders = createLoaders(
    () => {
      throw missing
    },
    () => {}
  )
  await t.throwsAsync(async () => loaders['.yaml']?.('/somewhere/settings.yaml', 'port: 80'), { is: missing })
})

for (const [check, source] of [
  [defaultFolder, 'default'],
  [(cwd: string) => checkValueAndPath('wwwroot', 'wwwroot', cwd), 'flag --wwwroot']
] as const) {
  test.serial(`a folder of static files that the user may not enter is refused: ${source}`, async t => {
    const cwd = await tempFolder(t, { 'wwwroot/index.html': 'hello' })
    await chmod(cwd, 0o755)
    await chmod(join(cwd, 'wwwroot'), 0)
    t.teardown(() => chmod(join(cwd, 'wwwroot'), 0o755))
    t.deepEqual(await unprivileged(() => check(cwd)), {
      rejected: ['cannot be the string "wwwroot", because this user may not read it. Set it to the path of a folder.']
    })
  })
}
