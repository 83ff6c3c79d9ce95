// Files and folders that this user may not read are reported as such. The tests are serial, because the effective user and the working directory belong to the whole process.
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { checkValueAndPath, defaultFolder } from '#src/config/check-value.js'
import { describeProblem } from '#src/config/errors.js'
import { layerOfFile } from '#src/config/file.js'
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
  const { problems, isRead } = await unprivileged(() => layerOfFile(cwd))
  t.is(problems[0]?.key, cwd)
  t.regex(problems[0]?.message ?? '', /^cannot be searched for a settings file, because this user may not read it\. /)
  t.false(isRead)
})

test.serial(
  'a settings file that this user may not reach is an error, because it may contain the access list',
  async t => {
    const cwd = await tempFolder(t, { 'config/keep': '', 'platform-auth-server.config.yaml': 'port: 80\n' })
    await chmod(cwd, 0o755)
    const problemsWithout = async (path: string, mode: number) => {
      await chmod(join(cwd, path), 0)
      const { problems, isRead } = await unprivileged(() => layerOfFile(cwd))
      await chmod(join(cwd, path), mode)
      t.false(isRead)
      return problems.map(problem => describeProblem(problem).replaceAll(cwd, '<cwd>'))
    }
    t.deepEqual(await problemsWithout('platform-auth-server.config.yaml', 0o644), [
      'platform-auth-server.config.yaml (file platform-auth-server.config.yaml) cannot be read, because this user may not read it.'
    ])
    t.deepEqual(await problemsWithout('config', 0o755), [
      '<cwd>/config (folder) cannot be searched for a settings file, because this user may not read it. Give this user access to the folder, start the server in a different folder, or name the settings file with --config.'
    ])
  }
)

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
