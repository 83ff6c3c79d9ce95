/**
 * Adds the route `/api/hubs`, which gets a person's hubs from the platform with the internal token. The token itself stays
 * on the server. The command line can load this file as a module:
 *
 *   npx platform-auth-server --extend own-route.js
 *
 * The file is also a program of its own, which reads the same environment and settings files as the command line:
 *
 *   node own-route.js
 */
import { existsSync, realpathSync } from 'node:fs'
import { loadConfig, startServer } from 'platform-auth-server'

const HUBS = 'https://developer.api.autodesk.com/project/v1/hubs'

/** Adds the route after the routes of the server. */
export default function addHubs(app, { requireTokens, Router }, hubsUrl = HUBS) {
  const router = new Router()
  router.get('/api/hubs', requireTokens, hubs)
  app.use(router.routes())

  async function hubs(ctx) {
    const { access_token } = ctx.state.tokens.internal
    const answer = await fetch(hubsUrl, { headers: { authorization: `Bearer ${access_token}` } })
    ctx.status = answer.ok ? 200 : 502
    ctx.body = answer.ok
      ? await answer.json()
      : { error: 'server_error', error_description: 'The platform did not answer with the hubs.' }
  }
}

if (isMainModule()) {
  await run().catch(error => {
    // The message lists the invalid settings, or says why the server could not listen.
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  })
}

/** Returns false when another module imports this one. The path may be a link, or lack the extension. */
function isMainModule() {
  const [, script = ''] = process.argv
  return [script, `${script}.js`].some(path => existsSync(path) && realpathSync(path) === import.meta.filename)
}

async function run() {
  const { config } = await loadConfig()
  const server = await startServer(config, { extend: addHubs })
  process.stdout.write(`Listening at ${server.url}\n`)

  // The server finishes the requests under way. Then the process ends, because it has nothing left to do.
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
  // SIGHUP reads rotated secrets again. If the settings have become invalid, nothing changes.
  process.on('SIGHUP', async () => {
    try {
      server.replaceSecrets((await loadConfig()).config)
    } catch (error) {
      process.stderr.write(`${error.message}\n`)
    }
  })
}
