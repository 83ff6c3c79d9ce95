import test from 'ava'
import fc from 'fast-check'
import { ConfigError } from '#src/config/errors.js'
import { loadConfig } from '#src/config/load.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { keysAndSourcesOf, problemsOf } from './given.js'

test('all problems are reported together, each with its key and its source', async t => {
  const problems = await problemsOf(t, {
    flags: { port: 'x' },
    env: {
      SERVER_SESSION_SECRET: 'short',
      PLATFORM_CLIENT_ID: '',
      PLATFORM_CALLBACK_URL: 'http://localhost/callback',
      PLATFORM_AUTH_MODE: 'dual',
      PUBLIC_TOKEN_SCOPES: 'account:write'
    },
    files: { 'platform-auth-server.config.yaml': 'log: { level: 5, colour: true }\nrefresh: { marginSeconds: soon }' }
  })
  t.deepEqual(keysAndSourcesOf(problems), [
    'log.colour (file platform-auth-server.config.yaml)',
    'port (flag --port)',
    'session.secret (variable SERVER_SESSION_SECRET)',
    'platform.clientId (variable PLATFORM_CLIENT_ID)',
    'platform.callbackUrl (variable PLATFORM_CALLBACK_URL)',
    'refresh.marginSeconds (file platform-auth-server.config.yaml)',
    'log.level (file platform-auth-server.config.yaml)',
    'platform.publicScopes (variable PUBLIC_TOKEN_SCOPES)'
  ])
})

test('a required setting that is missing or empty is refused with the ways to set it', async t => {
  const cwd = await tempFolder(t, { '.platform-auth-serverrc': 'platform: { callbackUrl: "" }' })
  const error = await t.throwsAsync(loadConfig({ cwd, env: { SERVER_SESSION_SECRET: '  ' } }), {
    instanceOf: ConfigError
  })
  t.deepEqual(error?.message.split('\n'), [
    'The settings cannot be used:',
    '  session.secret (variable SERVER_SESSION_SECRET) is empty. Set the variable SERVER_SESSION_SECRET or SERVER_SESSION_SECRET_FILE, the flag --session-secret-file, or session.secret in a settings file.',
    '  platform.clientId is required. Set the variable PLATFORM_CLIENT_ID, the flag --client-id, or platform.clientId in a settings file.',
    '  platform.clientSecret is required. Set the variable PLATFORM_CLIENT_SECRET or PLATFORM_CLIENT_SECRET_FILE, the flag --client-secret-file, or platform.clientSecret in a settings file.',
    '  platform.callbackUrl (file .platform-auth-serverrc) is empty. Set the variable PLATFORM_CALLBACK_URL, the flag --callback-url, or platform.callbackUrl in a settings file.'
  ])
})

test("mistakes in a program's settings are reported like mistakes in a file", async t => {
  const overrides = { platform: { clientId: 5 }, prot: 80 } as object
  const problems = await problemsOf(t, { overrides })
  t.deepEqual(keysAndSourcesOf(problems), ['prot (this program)', 'platform.clientId (this program)'])
})

test('no error contains a refused secret, whatever its source', async t => {
  const secret = fc.string({ minLength: 6, maxLength: 31, unit: fc.constantFrom(...'XYZWQJ0123456789%&') })
  await fc.assert(
    fc.asyncProperty(
      secret,
      fc.constantFrom('env', 'file', 'wrong type', 'one level too high', 'both'),
      async (value, where) => {
        const env: Record<string, string> = {}
        let text = '{}'
        if (where === 'env' || where === 'both') env.SERVER_SESSION_SECRET = value
        if (where === 'both') env.SERVER_SESSION_SECRET_FILE = 'x'
        if (where === 'env') env.REDIS_URL = value
        if (where === 'file') text = JSON.stringify({ session: { secret: value, previousSecrets: [value] } })
        if (where === 'wrong type')
          text = JSON.stringify({ session: { secret: [value] }, platform: { clientSecret: { value } } })
        if (where === 'one level too high') text = JSON.stringify({ session: value })
        const cwd = await tempFolder(t, { '.platform-auth-serverrc.json': text })
        const error = await t.throwsAsync(loadConfig({ cwd, env }), { instanceOf: ConfigError })
        t.false(error?.message.includes(value))
      }
    ),
    { numRuns: 40 }
  )
})
