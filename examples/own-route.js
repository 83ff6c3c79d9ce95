/**
 * One more route beside those of the server: `/api/hubs` asks the platform with the internal token, which itself stays on
 * the server. The file is a module for the command line,
 *
 *   npx platform-auth-server --extend own-route.js
 *
 * and a program of its own, which takes the same environment and settings files as the command line:
 *
 *   node own-route.js
 */
import { existsSync, realpathSync } from 'node:fs'
import { loadConfig, startServer } from 'platform-auth-server'

const HUBS = 'https://developer.api.autodesk.com/project/v1/hubs'

/** Adds the route after those of the server. */
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

if (isStartedItself()) {
  await run().catch(error => {
    // The message lists wrong settings, or says why the server could not listen.
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  })
}

/** False when another module imports this one. The path of the command line may be a link, or lack the extension. */
function isStartedItself() {
  const [, started = ''] = process.argv
  return [started, `${started}.js`].some(path => existsSync(path) && realpathSync(path) === import.meta.filename)
}

async function run() {
  const { config } = await loadConfig()
  const server = await startServer(config, { extend: addHubs })
  process.stdout.write(`Listening at ${server.url}\n`)

  // The server finishes the requests under way. Then the process ends, because it has nothing left to do.
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
  // Rotated secrets are read again. If the settings have become invalid, nothing changes.
  process.on('SIGHUP', async () => {
    try {
      server.replaceSecrets((await loadConfig()).config)
    } catch (error) {
      process.stderr.write(`${error.message}\n`)
    }
  })
}
