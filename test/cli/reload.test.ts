import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { main } from '#src/cli/main.js'
import { createBrowser } from '../helpers/browser.js'
import { defaultCallbackUrl, publicOrigin as origin } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { freePort } from '../helpers/ports.js'
import { environmentFor } from '../helpers/program.js'
import { signIn } from '../helpers/server.js'
import { shell } from './shell.js'

const first = 'aVq7Zx81Qw7Lp3Vn5Rt9cTb4YhUj2MnBv'
const second = 'pLk9Kd62Hy4Mb8Jf0Gs1eRw3XzQoTiUy'

test('on SIGHUP the server reads new secrets without logging anyone out, keeps the old ones if the settings are invalid, and names settings that need a restart', async t => {
  const idp = await createHostileIdp(t, { clientSecret: 'gH5tR2wQ8zXc7VbN', callbackUrl: defaultCallbackUrl })
  const metricsPort = await freePort()
  const options = {
    files: { 'session-secret': `${first}\n`, 'client-secret': `${idp.clientSecret}\n`, previous: '' },
    env: {
      ...environmentFor(idp, defaultCallbackUrl),
      PLATFORM_AUTH_METRICS_ADDRESS: `127.0.0.1:${metricsPort}`,
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
  const lastReload = async () => {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
    const gaugeOf = (name: string) =>
      Number(new RegExp(`^platform_auth_config_last_reload_${name} (.+)$`, 'm').exec(text)?.[1])
    return { isSuccessful: gaugeOf('successful'), at: gaugeOf('success_timestamp_seconds') }
  }
  const start = await lastReload()
  t.is(start.isSuccessful, 1)
  t.true(Math.abs(start.at - Date.now() / 1000) < 600)

  // The old secret becomes the previous secret of the new one.
  await writeFile(join(terminal.cwd, 'session-secret'), second)
  await writeFile(join(terminal.cwd, '.env'), `SERVER_SESSION_PREVIOUS_SECRETS=${first}\n`)
  signals.emit('SIGHUP')
  await eventually(() => events('secrets_reloaded').length === 1)
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  const reloaded = await lastReload()
  t.is(reloaded.isSuccessful, 1)
  t.true(reloaded.at > start.at)
  const fresh = createBrowser(t, { origin, connectTo })
  await signIn(fresh)

  // The settings are invalid, so both sessions stay valid.
  await writeFile(join(terminal.cwd, 'session-secret'), 'short')
  signals.emit('SIGHUP')
  await eventually(() => events('reload_failed').length === 1)
  t.deepEqual(await lastReload(), { isSuccessful: 0, at: reloaded.at })
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  t.is((await fresh.fetch('/api/auth/profile')).statusCode, 200)

  // The old secret is removed. Sessions that were encrypted with it end, and those of the new secret stay valid.
  await writeFile(join(terminal.cwd, 'session-secret'), second)
  await writeFile(join(terminal.cwd, '.env'), '')
  signals.emit('SIGHUP')
  await eventually(() => events('secrets_reloaded').length === 2)
  t.is((await lastReload()).isSuccessful, 1)
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
