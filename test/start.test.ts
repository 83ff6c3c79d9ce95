// Servers that an application starts with startServer(): with a demo identity provider and with custom routes.

import { createServer } from 'node:http'
import test, { type ExecutionContext } from 'ava'
import { loadConfig } from '#src/config/load.js'
import type { Config } from '#src/config/settings.js'
import { ConfigError } from '#src/config/types/problem.js'
import { openDemo } from '#src/demo/open.js'
import { serve } from '#src/server/serve.js'
import { createApp, startServer } from '#src/server/start-server.js'
import { createBrowser } from './helpers/browser.js'
import { defaultCallbackUrl, testConfig } from './helpers/config.js'
import { createHostileIdp } from './helpers/hostile-idp/index.js'
import { collectLogs } from './helpers/logs.js'
import { freePort, listen } from './helpers/ports.js'
import { tempFolder } from './helpers/temp-folder.js'

async function demoConfig(t: ExecutionContext) {
  const cwd = await tempFolder(t)
  // The default time limit of 10 seconds is too short for a slow machine.
  const platform = { timeout: 60 }
  const settings = { mode: 'dual', port: 0, host: '127.0.0.1', platform } as const
  return (await loadConfig({ demo: true, env: {}, cwd, settings })).config
}

test('a program that replaces the port by 0 gets a callback URL with the real port, unless a reverse proxy has another host', async t => {
  const cwd = await tempFolder(t)
  const { config } = await loadConfig({ demo: true, env: {}, cwd })
  const { log } = await collectLogs('trace')
  const callbackUrlOf = async (platform = config.platform) => {
    const server = await startServer({ ...config, platform, port: 0, host: '127.0.0.1' }, { log, demo: true })
    t.teardown(() => server.close())
    return server.callbackUrl.replace(`:${server.port}/`, ':PORT/')
  }
  t.is(config.platform.callbackUrl, 'http://localhost:8080/api/auth/callback')
  t.is(await callbackUrlOf(), 'http://localhost:PORT/api/auth/callback')
  for (const callbackUrl of ['https://app.example/api/auth/callback', 'https://localhost/api/auth/callback'])
    t.is(await callbackUrlOf({ ...config.platform, callbackUrl }), callbackUrl)
})

test("a demo replaces the provider in a program's settings and stops with the server", async t => {
  const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
  const { log } = await collectLogs('trace')
  const config = { ...testConfig(idp), port: await freePort() }
  const server = await startServer(config, { log, demo: { port: await freePort(), tokenLifetimeSeconds: 60 } })
  t.teardown(() => server.close())
  const browser = createBrowser(t, { origin: server.url })
  const { headers } = await browser.navigate('/api/auth/login')
  t.is(new URL(headers.location ?? '').origin, String(server.demoUrl))
  t.is(server.callbackUrl, defaultCallbackUrl)
  await server.close()
  await t.throwsAsync(fetch(String(server.demoUrl)))
})

test('no other program can take the port of a demo before the server listens on it', async t => {
  const { log } = await collectLogs('trace')
  const demo = await openDemo(await demoConfig(t), {}, log)
  t.teardown(demo.close)
  const { port } = demo.config
  await t.throwsAsync(listen(t, createServer(), port), { code: 'EADDRINUSE' })
  const server = await serve(demo.config, { log, demo, reserved: demo.reserved })
  t.is(server.port, port)
  t.is((await fetch(`${server.url}/healthz`)).status, 200)
  await server.close()
  await demo.close()
  await listen(t, createServer(), port)
})

test('startServer() and createApp() list the settings that an incomplete configuration lacks', async t => {
  const { platform: _, ...config } = await demoConfig(t)
  const incomplete = { ...config, port: undefined } as unknown as Config
  const advice = '(your application) is missing. Pass the config that loadConfig returns.'
  const message = `The settings cannot be used:\n  platform ${advice}\n  port ${advice}`
  await t.throwsAsync(startServer(incomplete), { instanceOf: ConfigError, message })
  await t.throwsAsync(startServer(undefined as unknown as Config), { instanceOf: ConfigError })
  t.throws(() => createApp(incomplete), { instanceOf: ConfigError, message })
})

test('if the server cannot listen, startServer() stops the demo', async t => {
  const port = await listen(t, createServer())
  const { log } = await collectLogs('trace')
  const config = { ...(await demoConfig(t)), port }
  const demoPort = await freePort()
  await t.throwsAsync(startServer(config, { log, demo: { port: demoPort } }), { code: 'EADDRINUSE' })
  await t.throwsAsync(fetch(`http://127.0.0.1:${demoPort}/`))
  const error = await t.throwsAsync(startServer({ ...config, port: 0 }, { log, demo: { port } }), {
    code: 'EADDRINUSE'
  })
  t.is(error && 'listener' in error && error.listener, 'demo')
})
