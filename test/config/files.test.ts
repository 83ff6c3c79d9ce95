import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { loadConfig } from '#src/config/load.js'
import { testWhere } from '../helpers/requirement.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { areProblems, enough, sessionSecret } from './given.js'
import { testSituations } from './messages.js'

type Files = Readonly<Record<string, string>>

const hasPermissionBits = process.platform !== 'win32'
const testPermissions = testWhere(hasPermissionBits, 'Windows has no permission bits')

/** Asserts the warnings about settings in a folder that every user may enter. */
async function warns(
  t: ExecutionContext,
  files: Files,
  { modes, variables = {} }: { modes: Readonly<Record<string, number>>; variables?: Readonly<Record<string, string>> },
  ...expected: readonly string[]
) {
  const cwd = await tempFolder(t, files)
  await chmod(cwd, 0o755)
  for (const [path, mode] of Object.entries(modes)) await chmod(join(cwd, path), mode)
  const { SERVER_SESSION_SECRET: _, ...others } = enough
  const { warnings } = await loadConfig({ cwd, env: { ...others, ...variables } })
  areProblems(t, warnings, expected)
}

const dotEnv = { '.env': `SERVER_SESSION_SECRET=${sessionSecret}\n` }

const inOpenFolder = [0o644, 0o602, 0o666, 0o600, 0o640, 0o660, 0o400].map(mode => [mode, 0o755] as const)
// Other users cannot enter the last folder.
for (const [mode, folder] of [...inOpenFolder, [0o666, 0o770] as const]) {
  const isOpen = folder === 0o755 && (mode & 0o006) !== 0
  const title = `a .env of mode ${mode.toString(8)} in a folder of mode ${folder.toString(8)}`
  testPermissions(`${title} gets ${isOpen ? 'a' : 'no'} warning`, async t => {
    const expected = isOpen ? ['.env working directory read or changed every user chmod o-rw /.env'] : []
    await warns(t, dotEnv, { modes: { '.env': mode, '.': folder } }, ...expected)
  })
}

testPermissions('a warning about a secret file contains the name of its setting', async t => {
  const files = { 'private/session': sessionSecret }
  const variables = { SERVER_SESSION_SECRET_FILE: 'private/session' }
  const inPrivate = (mode: number) => ({ modes: { private: mode, 'private/session': 0o644 }, variables })
  const warning = 'session.secret SERVER_SESSION_SECRET_FILE read every user chmod o-rw /private/session'
  await warns(t, files, inPrivate(0o755), warning)
  await warns(t, files, inPrivate(0o750))
})

testPermissions('a settings file that every user can read gets one warning if it contains secrets', async t => {
  const name = 'platform-auth-server.config.yaml'
  const secrets = `session:\n  secret: ${sessionSecret}\nredis: { url: 'redis://:password@localhost' }\n`
  const modes = { [name]: 0o644 }
  await warns(t, { [name]: secrets }, { modes }, `session.secret file ${name} read every user chmod o-rw /${name}`)
  const variables = { SERVER_SESSION_SECRET: sessionSecret }
  await warns(t, { [name]: 'mode: single\nredis: { url: redis://localhost }\n' }, { modes, variables })
})

testPermissions('a settings script gets no warning, because it may read its secrets from elsewhere', async t => {
  const name = 'platform-auth-server.config.mjs'
  const script = `export default { session: { secret: '${sessionSecret}' } }\n`
  await warns(t, { [name]: script }, { modes: { [name]: 0o644 } })
})

// Files with secrets or settings inside wwwroot, which everyone could download.
testSituations('published-files')
