import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { checkFolder, ownFolder } from '#src/config/wwwroot.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { unprivileged } from '../helpers/unprivileged.js'

for (const [check, origin] of [
  [ownFolder, 'default'],
  [(cwd: string) => checkFolder('wwwroot', cwd), 'flag --wwwroot']
] as const) {
  // Serial, because the effective user belongs to the whole process.
  test.serial(`a folder of static files that the user may not enter is refused: ${origin}`, async t => {
    const cwd = await tempFolder(t, { 'wwwroot/index.html': 'hello' })
    await chmod(cwd, 0o755)
    await chmod(join(cwd, 'wwwroot'), 0)
    t.teardown(() => chmod(join(cwd, 'wwwroot'), 0o755))
    t.deepEqual(await unprivileged(() => check(cwd)), {
      rejected: ['found the text "wwwroot", but it cannot be read: this user may not read it; allowed: a folder']
    })
  })
}
