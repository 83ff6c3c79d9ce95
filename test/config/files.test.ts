import { chmod, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { describeProblem } from '#src/config/errors.js'
import { type LoadConfigOptions, loadConfig, resolveSettings } from '#src/config/load.js'
import { testWhere } from '../helpers/requirement.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { clientSecret, enough, sessionSecret } from './given.js'

const hasPermissionBits = process.platform !== 'win32'
const testPermissions = testWhere(hasPermissionBits, 'Windows has no permission bits')

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
  return warnings.map(warning => describeProblem(warning).replaceAll(`${cwd}/`, ''))
}

const dotEnv = { '.env': `SERVER_SESSION_SECRET=${sessionSecret}\n` }

for (const [mode, folder, done] of [
  [0o644, 0o755, 'read'],
  [0o602, 0o755, 'changed'],
  [0o666, 0o755, 'read and changed'],
  [0o600, 0o755, undefined],
  [0o640, 0o755, undefined],
  [0o660, 0o755, undefined],
  [0o400, 0o755, undefined],
  // Other users cannot enter this folder.
  [0o666, 0o770, undefined]
] as const) {
  const title = `a .env of mode ${mode.toString(8)} in a folder of mode ${folder.toString(8)}`
  testPermissions(`${title} gets ${done ? 'a' : 'no'} warning`, async t => {
    const warning = `.env (working directory) can be ${done} by every user of this machine. Run "chmod o-rw .env".`
    t.deepEqual(await warningsOf(t, dotEnv, { modes: { '.env': mode, '.': folder } }), done ? [warning] : [])
  })
}

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
  const secrets = `session:\n  secret: ${sessionSecret}\nredis: { url: 'redis://:password@localhost' }\n`
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

// Files with secrets or settings inside wwwroot, which everyone could download.
type Files = Readonly<Record<string, string>>

/** Returns the problems of settings in a new working directory, in which the path of this directory is left out. */
async function problemsIn(
  t: ExecutionContext,
  files: Files,
  { env, ...sources }: LoadConfigOptions,
  prepare: (cwd: string) => Promise<unknown> = async () => {}
): Promise<string[]> {
  const cwd = await tempFolder(t, files)
  await prepare(cwd)
  const { problems } = await resolveSettings({ cwd, env: { ...enough, ...env }, ...sources })
  return problems.map(problem => describeProblem(problem).replaceAll(cwd, '<cwd>'))
}

function published(key: string, source: string, file: string, wwwroot: string): string {
  return `${key} (${source}) must not be public, but the file <cwd>/${file} is inside wwwroot (<cwd>${wwwroot}), whose files everyone can download. Move this file, or set wwwroot to a different folder.`
}

const settings = 'platform-auth-server.config.yaml'
const secretFile = { SERVER_SESSION_SECRET: undefined, SERVER_SESSION_SECRET_FILE: 'secrets/session' }

const refused: Readonly<Record<string, readonly [files: Files, sources: LoadConfigOptions, problem: string]>> = {
  'the settings file': [
    { [settings]: 'port: 9000\n' },
    { flags: { wwwroot: '.' } },
    published(settings, 'settings file', settings, '')
  ],
  'a settings file whose name begins with a dot': [
    { '.platform-auth-serverrc': 'port: 9000\n' },
    { flags: { wwwroot: '.' } },
    published('.platform-auth-serverrc', 'settings file', '.platform-auth-serverrc', '')
  ],
  'the package.json with the settings': [
    { 'package.json': '{"platform-auth-server":{"port":9000}}' },
    { flags: { wwwroot: '.' } },
    published('package.json', 'settings file', 'package.json', '')
  ],
  'a settings file that --config names': [
    { 'wwwroot/private/own.json': '{}' },
    { configFile: 'wwwroot/private/own.json' },
    published('wwwroot/private/own.json', 'settings file', 'wwwroot/private/own.json', '/wwwroot')
  ],
  '.env': [{ '.env': 'PORT=9000\n' }, { flags: { wwwroot: '.' } }, published('.env', 'working directory', '.env', '')],
  'a secret file': [
    { 'secrets/session': sessionSecret },
    { flags: { wwwroot: '.' }, env: secretFile },
    published('session.secret', 'variable SERVER_SESSION_SECRET_FILE', 'secrets/session', '')
  ],
  'a secret file that is not used, because another source overrides it': [
    { 'wwwroot/client': clientSecret },
    {
      env: { PLATFORM_CLIENT_SECRET: undefined, PLATFORM_CLIENT_SECRET_FILE: 'wwwroot/client' },
      settings: { platform: { clientSecret } }
    },
    published('platform.clientSecret', 'variable PLATFORM_CLIENT_SECRET_FILE', 'wwwroot/client', '/wwwroot')
  ],
  'the module of extension': [
    { 'wwwroot/routes.mjs': 'export default () => {}' },
    { flags: { extension: 'wwwroot/routes.mjs' } },
    published('extension', 'flag --extension', 'wwwroot/routes.mjs', '/wwwroot')
  ]
}

for (const [what, [files, sources, problem]] of Object.entries(refused)) {
  test(`the server does not start if wwwroot contains ${what}`, async t => {
    t.deepEqual(await problemsIn(t, files, sources), [problem])
  })
}

test('the real paths decide whether wwwroot contains a file', async t => {
  const files = { 'pages/index.html': '', 'pages/secret': sessionSecret, 'outside/secret': sessionSecret }
  const sources = { flags: { wwwroot: 'linked' }, env: secretFile }
  const linkTo = (target: string) => async (cwd: string) => {
    await symlink('pages', join(cwd, 'linked'))
    await mkdir(join(cwd, 'secrets'))
    await symlink(join('..', target), join(cwd, 'secrets/session'))
  }
  t.deepEqual(await problemsIn(t, files, sources, linkTo('pages/secret')), [
    published('session.secret', 'variable SERVER_SESSION_SECRET_FILE', 'secrets/session', '/linked')
  ])
  t.deepEqual(await problemsIn(t, files, sources, linkTo('outside/secret')), [])
})

test('files next to wwwroot are accepted, even if their names resemble its name', async t => {
  const files = {
    'wwwroot/index.html': '',
    'wwwroot/package.json': '{}',
    'wwwroot-secrets/session': sessionSecret,
    '.env': 'PORT=9000\n',
    [settings]: 'extension: routes.mjs\n',
    'routes.mjs': 'export default () => {}'
  }
  const env = { ...secretFile, SERVER_SESSION_SECRET_FILE: 'wwwroot-secrets/session' }
  t.deepEqual(await problemsIn(t, files, { env }), [])
})

test('a package.json without settings and a folder .env may be in wwwroot', async t => {
  const files = { 'package.json': '{"name":"pages"}', '.env/bin/python': '', 'index.html': '' }
  t.deepEqual(await problemsIn(t, files, { flags: { wwwroot: '.' } }), [])
})
