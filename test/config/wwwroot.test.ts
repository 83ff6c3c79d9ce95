import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { checkValueAndPath, defaultFolder } from '#src/config/check-value.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { unprivileged } from '../helpers/unprivileged.js'

for (const [check, source] of [
  [defaultFolder, 'default'],
  [(cwd: string) => checkValueAndPath('wwwroot', 'wwwroot', cwd), 'flag --wwwroot']
] as const) {
  // Serial, because the effective user belongs to the whole process.
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
