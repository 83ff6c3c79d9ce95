/**
 * Adds the route `/api/hubs`, which gets the hubs of a user from the platform. It calls the platform with the internal token,
 * which is the access token that stays on the server. The command line can load this file as a module:
 *
 *   npx platform-auth-server --extension custom-route.js
 *
 * This file is also an application, which reads the same environment and settings files as the command line:
 *
 *   node custom-route.js
 */
import { existsSync, realpathSync } from 'node:fs'
import { loadConfig, startServer } from 'platform-auth-server'

const HUBS = 'https://developer.api.autodesk.com/project/v1/hubs'

/** Adds the route to the Koa application. The server calls this function once at start. */
export default function addHubs(app, { requireTokens, Router }, hubsUrl = HUBS) {
  const router = new Router()
  router.get('/api/hubs', requireTokens, hubs)
  app.use(router.routes())

  async function hubs(ctx) {
    const { access_token } = ctx.state.tokens.internal
    const response = await fetch(hubsUrl, { headers: { authorization: `Bearer ${access_token}` } })
    ctx.status = response.ok ? 200 : 502
    ctx.body = response.ok
      ? await response.json()
      : { error: 'server_error', error_description: 'The platform did not return the hubs.' }
  }
}

if (isMainModule()) {
  await run().catch(error => {
    // The message lists the invalid settings, or says why the server could not listen.
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  })
}

/** Returns false if another module imports this file. The path on the command line may be a symlink, or lack the extension. */
function isMainModule() {
  const [, script = ''] = process.argv
  return [script, `${script}.js`].some(path => existsSync(path) && realpathSync(path) === import.meta.filename)
}

async function run() {
  const { config } = await loadConfig()
  const server = await startServer(config, { extension: addHubs })
  process.stdout.write(`Listening at ${server.url}\n`)

  // The server completes the current requests and stops listening. Then the process exits, because nothing keeps it running.
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
  // On SIGHUP, the application replaces the secrets. If the settings are invalid, it keeps the old secrets and prints the reason.
  process.on('SIGHUP', async () => {
    try {
      server.replaceSecrets((await loadConfig()).config)
    } catch (error) {
      server.reloadFailed()
      process.stderr.write(`${error.message}\n`)
    }
  })
}
