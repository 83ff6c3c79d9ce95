import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { loadConfig } from '#src/config/load.js'
import { testWhere } from '../helpers/requirement.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { enough, sessionSecret } from './given.js'

const hasPermissionBits = process.platform !== 'win32'
const testPermissions = (title: string, body: (t: ExecutionContext) => Promise<void>) =>
  testWhere(hasPermissionBits, 'Windows has no permission bits', title, body)

/** Returns the warnings about settings in a folder that every user may enter. */
async function warningsOf(
  t: ExecutionContext,
  files: Readonly<Record<string, string>>,
  { modes, variables = {} }: { modes: Readonly<Record<string, number>>; variables?: Readonly<Record<string, string>> }
) {
  const cwd = await tempFolder(t, files)
  await chmod(cwd, 0o755)
  for (const [path, mode] of Object.entries(modes)) await chmod(join(cwd, path), mode)
  const { SERVER_SESSION_SECRET: _, ...others } = enough
  const { warnings } = await loadConfig({ cwd, env: { ...others, ...variables } })
  return warnings.map(({ key, source, message }) => `${key} (${source}) ${message}`.replaceAll(`${cwd}/`, ''))
}

const dotEnv = { '.env': `SERVER_SESSION_SECRET=${sessionSecret}\n` }

for (const [mode, done] of [
  [0o644, 'read'],
  [0o602, 'changed'],
  [0o666, 'read and changed']
] as const) {
  testPermissions(`a .env of mode ${mode.toString(8)} gets a warning`, async t => {
    const expected = `.env (working directory) can be ${done} by every user of this machine. Run "chmod o-rw .env".`
    t.deepEqual(await warningsOf(t, dotEnv, { modes: { '.env': mode } }), [expected])
  })
}

for (const mode of [0o600, 0o640, 0o660, 0o400]) {
  testPermissions(`a .env of mode ${mode.toString(8)} gets no warning`, async t => {
    t.deepEqual(await warningsOf(t, dotEnv, { modes: { '.env': mode } }), [])
  })
}

testPermissions('a .env file in a folder that other users cannot enter gets no warning', async t => {
  const modes = { '.env': 0o666, '.': 0o770 }
  t.deepEqual(await warningsOf(t, dotEnv, { modes }), [])
})

testPermissions('a warning about a secret file contains the name of its setting', async t => {
  const files = { 'private/session': sessionSecret }
  const variables = { SERVER_SESSION_SECRET_FILE: 'private/session' }
  const inPrivate = (mode: number) => ({ private: mode, 'private/session': 0o644 })
  t.deepEqual(await warningsOf(t, files, { modes: inPrivate(0o755), variables }), [
    'session.secret (variable SERVER_SESSION_SECRET_FILE) can be read by every user of this machine. Run "chmod o-rw private/session".'
  ])
  t.deepEqual(await warningsOf(t, files, { modes: inPrivate(0o750), variables }), [])
})

testPermissions('a settings file that every user can read gets one warning if it contains secrets', async t => {
  const name = 'platform-auth-server.config.yaml'
  const secrets = `session:\n  secret: ${sessionSecret}\nredisUrl: redis://:password@localhost\n`
  const modes = { [name]: 0o644 }
  t.deepEqual(await warningsOf(t, { [name]: secrets }, { modes }), [
    `session.secret (file ${name}) can be read by every user of this machine. Run "chmod o-rw ${name}".`
  ])
  const variables = { SERVER_SESSION_SECRET: sessionSecret }
  t.deepEqual(await warningsOf(t, { [name]: 'mode: single\n' }, { modes, variables }), [])
})

testPermissions('a settings script gets no warning, because it may read its secrets from elsewhere', async t => {
  const name = 'platform-auth-server.config.mjs'
  const script = `export default { session: { secret: '${sessionSecret}' } }\n`
  t.deepEqual(await warningsOf(t, { [name]: script }, { modes: { [name]: 0o644 } }), [])
})
