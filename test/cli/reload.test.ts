import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { main } from '#src/cli/main.js'
import { createBrowser } from '../helpers/browser.js'
import { defaultCallbackUrl, publicOrigin as origin } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { environmentFor } from '../helpers/program.js'
import { signIn } from '../helpers/server.js'
import { shell } from './shell.js'

const first = 'aVq7Zx81Qw7Lp3Vn5Rt9cTb4YhUj2MnBv'
const second = 'pLk9Kd62Hy4Mb8Jf0Gs1eRw3XzQoTiUy'

test('on SIGHUP the server reads new secrets without logging anyone out, keeps the old ones if the settings are invalid, and names settings that need a restart', async t => {
  const idp = await createHostileIdp(t, { clientSecret: 'gH5tR2wQ8zXc7VbN', callbackUrl: defaultCallbackUrl })
  const options = {
    files: { 'session-secret': `${first}\n`, 'client-secret': `${idp.clientSecret}\n`, previous: '' },
    env: {
      ...environmentFor(idp, defaultCallbackUrl),
      PLATFORM_CLIENT_SECRET: '',
      PLATFORM_CLIENT_SECRET_FILE: 'client-secret',
      SERVER_SESSION_SECRET: '',
      SERVER_SESSION_SECRET_FILE: 'session-secret'
    }
  }
  const { terminal, signals, log } = await shell(t, ['start'], options)
  const events = (name: string) => log().filter(({ event }) => event === name)
  const ended = main(terminal)
  await eventually(() => events('server_started').length === 1)
  const connectTo = { [origin]: String(events('server_started')[0]?.url) }
  const browser = createBrowser(t, { origin, connectTo })
  await signIn(browser)

  // The old secret becomes the previous secret of the new one.
  await writeFile(join(terminal.cwd, 'session-secret'), second)
  await writeFile(join(terminal.cwd, '.env'), `SERVER_SESSION_PREVIOUS_SECRETS=${first}\n`)
  signals.emit('SIGHUP')
  await eventually(() => events('secrets_reloaded').length === 1)
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  const fresh = createBrowser(t, { origin, connectTo })
  await signIn(fresh)

  // The settings are invalid, so both sessions stay valid.
  await writeFile(join(terminal.cwd, 'session-secret'), 'short')
  signals.emit('SIGHUP')
  await eventually(() => events('reload_failed').length === 1)
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  t.is((await fresh.fetch('/api/auth/profile')).statusCode, 200)

  // The old secret is removed. Sessions that were encrypted with it end, and those of the new secret stay valid.
  await writeFile(join(terminal.cwd, 'session-secret'), second)
  await writeFile(join(terminal.cwd, '.env'), '')
  signals.emit('SIGHUP')
  await eventually(() => events('secrets_reloaded').length === 2)
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 401)
  t.is((await fresh.fetch('/api/auth/profile')).statusCode, 200)
  t.is(events('restart_required').length, 0)

  // Settings that are not secrets are compared with those of the start.
  await writeFile(join(terminal.cwd, '.env'), 'PLATFORM_AUTH_MODE=dual\nPLATFORM_SCOPES=data:read\n')
  signals.emit('SIGHUP')
  await eventually(() => events('restart_required').length === 1)
  t.deepEqual(events('restart_required')[0]?.settings, ['mode', 'platform.scopes'])

  signals.emit('SIGTERM')
  t.is(await ended, 0)
})
