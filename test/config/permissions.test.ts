// Files and folders that this user may not read are reported as such. The tests are serial, because the effective user and the working directory belong to the whole process.
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { resolveSettings } from '#src/config/load.js'
import { rows } from '#src/config/settings.js'
import { layerOfFile } from '#src/config/sources/settings-file.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { unprivileged } from '../helpers/unprivileged.js'
import { areProblems, enough } from './given.js'

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
  const { findings, isRead } = await unprivileged(() => layerOfFile(cwd, rows))
  areProblems(t, findings, [`${cwd} searched settings file this user may not`])
  t.false(isRead)
})

test.serial(
  'a settings file that this user may not reach is an error, because it may contain the access list',
  async t => {
    const cwd = await tempFolder(t, { 'config/keep': '', 'platform-auth-server.config.yaml': 'port: 80\n' })
    await chmod(cwd, 0o755)
    const without = async (path: string, mode: number, problem: string) => {
      await chmod(join(cwd, path), 0)
      const { findings, isRead } = await unprivileged(() => layerOfFile(cwd, rows))
      await chmod(join(cwd, path), mode)
      t.false(isRead)
      areProblems(t, findings, [problem])
    }
    const name = 'platform-auth-server.config.yaml'
    await without(name, 0o644, `${name} file this user may not read`)
    await without('config', 0o755, `${cwd}/config (folder) searched this user may not access --config`)
  }
)

test.serial('a folder of static files that the user may not enter is refused, also the default one', async t => {
  const cwd = await tempFolder(t, { 'wwwroot/index.html': 'hello' })
  await chmod(cwd, 0o755)
  await chmod(join(cwd, 'wwwroot'), 0)
  t.teardown(() => chmod(join(cwd, 'wwwroot'), 0o755))
  for (const flags of [{}, { wwwroot: 'wwwroot' }]) {
    const { problems } = await unprivileged(() => resolveSettings({ cwd, env: enough, flags }))
    areProblems(t, problems, ['wwwroot this user may not folder'])
  }
})
