import { chmod, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { type LoadConfigOptions, loadConfig, resolveSettings } from '#src/config/load.js'
import { testWhere } from '../helpers/requirement.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { areProblems, clientSecret, enough, sessionSecret } from './given.js'

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

/** Asserts the problems of settings in a new working directory. */
async function publishes(
  t: ExecutionContext,
  files: Files,
  { env, ...sources }: LoadConfigOptions,
  expected: readonly string[],
  prepare: (cwd: string) => Promise<unknown> = async () => {}
): Promise<void> {
  const cwd = await tempFolder(t, files)
  await prepare(cwd)
  const { problems } = await resolveSettings({ cwd, env: { ...enough, ...env }, ...sources })
  areProblems(
    t,
    problems,
    expected.map(words => `${words.replaceAll('CWD', cwd)} public everyone`)
  )
}

const settings = 'platform-auth-server.config.yaml'
const secretFile = { SERVER_SESSION_SECRET: undefined, SERVER_SESSION_SECRET_FILE: 'secrets/session' }

const refused: Readonly<Record<string, readonly [files: Files, sources: LoadConfigOptions, problem: string]>> = {
  'the settings file': [
    { [settings]: 'port: 9000\n' },
    { flags: { wwwroot: '.' } },
    `${settings} settings file CWD/${settings} (CWD)`
  ],
  'a settings file whose name begins with a dot': [
    { '.platform-auth-serverrc': 'port: 9000\n' },
    { flags: { wwwroot: '.' } },
    '.platform-auth-serverrc settings file CWD/.platform-auth-serverrc (CWD)'
  ],
  'the package.json with the settings': [
    { 'package.json': '{"platform-auth-server":{"port":9000}}' },
    { flags: { wwwroot: '.' } },
    'package.json settings file CWD/package.json (CWD)'
  ],
  'a settings file that --config names': [
    { 'wwwroot/private/own.json': '{}' },
    { configFile: 'wwwroot/private/own.json' },
    'wwwroot/private/own.json settings file CWD/wwwroot/private/own.json (CWD/wwwroot)'
  ],
  '.env': [{ '.env': 'PORT=9000\n' }, { flags: { wwwroot: '.' } }, '.env working directory CWD/.env (CWD)'],
  'a secret file': [
    { 'secrets/session': sessionSecret },
    { flags: { wwwroot: '.' }, env: secretFile },
    'session.secret SERVER_SESSION_SECRET_FILE CWD/secrets/session (CWD)'
  ],
  'a secret file that is not used, because another source overrides it': [
    { 'wwwroot/client': clientSecret },
    {
      env: { PLATFORM_CLIENT_SECRET: undefined, PLATFORM_CLIENT_SECRET_FILE: 'wwwroot/client' },
      settings: { platform: { clientSecret } }
    },
    'platform.clientSecret PLATFORM_CLIENT_SECRET_FILE CWD/wwwroot/client (CWD/wwwroot)'
  ],
  'the module of extension': [
    { 'wwwroot/routes.mjs': 'export default () => {}' },
    { flags: { extension: 'wwwroot/routes.mjs' } },
    'extension --extension CWD/wwwroot/routes.mjs (CWD/wwwroot)'
  ]
}

for (const [what, [files, sources, problem]] of Object.entries(refused)) {
  test(`the server does not start if wwwroot contains ${what}`, t => publishes(t, files, sources, [problem]))
}

test('the real paths decide whether wwwroot contains a file', async t => {
  const files = { 'pages/index.html': '', 'pages/secret': sessionSecret, 'outside/secret': sessionSecret }
  const sources = { flags: { wwwroot: 'linked' }, env: secretFile }
  const linkTo = (target: string) => async (cwd: string) => {
    await symlink('pages', join(cwd, 'linked'))
    await mkdir(join(cwd, 'secrets'))
    await symlink(join('..', target), join(cwd, 'secrets/session'))
  }
  const problem = 'session.secret SERVER_SESSION_SECRET_FILE CWD/secrets/session (CWD/linked)'
  await publishes(t, files, sources, [problem], linkTo('pages/secret'))
  await publishes(t, files, sources, [], linkTo('outside/secret'))
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
  await publishes(t, files, { env }, [])
})

test('a package.json without settings and a folder .env may be in wwwroot', async t => {
  const files = { 'package.json': '{"name":"pages"}', '.env/bin/python': '', 'index.html': '' }
  await publishes(t, files, { flags: { wwwroot: '.' } }, [])
})
