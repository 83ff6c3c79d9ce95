import { chmod } from 'node:fs/promises'
import test from 'ava'
import { ConfigError } from '#src/config/errors.js'
import { loadConfig } from '#src/config/load.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { enough } from './given.js'

const NOBODY = 65534

/** Runs the work as a user to whom file permissions apply, because they do not apply to root. */
async function unprivileged<Result>(work: () => Promise<Result>): Promise<Result> {
  if (process.geteuid?.() !== 0) return work()
  process.seteuid?.(NOBODY)
  try {
    return await work()
  } finally {
    process.seteuid?.(0)
  }
}

for (const [flags, origin] of [
  [{}, 'default'],
  [{ wwwroot: 'wwwroot' }, 'flag --wwwroot']
] as const) {
  // Serial, because the effective user belongs to the whole process.
  test.serial(`a folder of static files that the user may not enter is refused: ${origin}`, async t => {
    const cwd = await tempFolder(t, { 'wwwroot/index.html': 'hello' })
    await chmod(cwd, 0o755)
    await chmod(`${cwd}/wwwroot`, 0)
    t.teardown(() => chmod(`${cwd}/wwwroot`, 0o755))
    const loading = () => t.throwsAsync(loadConfig({ cwd, env: enough, flags }), { instanceOf: ConfigError })
    const error = await unprivileged(loading)
    const message = 'found the text "wwwroot", but it cannot be read: this user may not read it; allowed: a folder'
    t.deepEqual(error?.problems, [{ key: 'wwwroot', origin, message }])
  })
}
