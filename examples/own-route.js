/**
 * A program of its own around the server, with one more route: `/api/hubs` asks the platform with the internal token, which
 * itself stays on the server.
 *
 *   node examples/own-route.js
 *
 * takes the same environment and config files as the command line.
 */
import { existsSync, realpathSync } from 'node:fs'
import { loadConfig, requireTokens, startServer } from 'platform-auth-server'

const HUBS = 'https://developer.api.autodesk.com/project/v1/hubs'

/** Puts the route behind those of the server. */
export function addHubs(app, hubsUrl = HUBS) {
  app.use(async (ctx, next) => (ctx.path === '/api/hubs' ? requireTokens(ctx, () => hubs(ctx)) : next()))

  async function hubs(ctx) {
    const { access_token } = ctx.state.tokens.internal
    const answer = await fetch(hubsUrl, { headers: { authorization: `Bearer ${access_token}` } })
    ctx.status = answer.ok ? 200 : 502
    ctx.body = answer.ok
      ? await answer.json()
      : { error: 'server_error', error_description: 'The hubs are not to be had.' }
  }
}

if (isStartedItself()) {
  await run().catch(error => {
    // What was wrong with the settings, or why the port cannot be had.
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  })
}

/** And not imported. The path it was started by may be a link, or lack its ending. */
function isStartedItself() {
  const [, started = ''] = process.argv
  return [started, `${started}.js`].some(path => existsSync(path) && realpathSync(path) === import.meta.filename)
}

async function run() {
  const { config } = await loadConfig()
  const server = await startServer(config, { extend: app => addHubs(app) })
  process.stdout.write(`Listening at ${server.url}\n`)

  // Requests under way are finished; then nothing is left to do and the process ends.
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
  // Secrets that were rotated are read again; with settings that are wrong now, all stays as it was.
  process.on('SIGHUP', async () => {
    try {
      server.replaceSecrets((await loadConfig()).config)
    } catch (error) {
      process.stderr.write(`${error.message}\n`)
    }
  })
}
