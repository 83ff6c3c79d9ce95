/**
 * A program of its own around the server, with one more route: `/api/hubs` asks the platform with the internal token, which
 * itself stays on the server.
 *
 *   node examples/own-route.js
 *
 * takes the same environment and config files as the command line.
 */
import { createApp, loadConfig, requireTokens } from 'platform-auth-server'

const HUBS = 'https://developer.api.autodesk.com/project/v1/hubs'

/**
 * @param {import('platform-auth-server').Config} config
 * @param {{ hubsUrl?: string, parts?: Partial<import('platform-auth-server').AppParts> }} [options]
 */
export function createExample(config, { hubsUrl = HUBS, parts } = {}) {
  const app = createApp(config, parts)
  app.use(async (ctx, next) => (ctx.path === '/api/hubs' ? requireTokens(ctx, () => hubs(ctx)) : next()))

  async function hubs(ctx) {
    const { access_token } = ctx.state.tokens.internal
    const answer = await fetch(hubsUrl, { headers: { authorization: `Bearer ${access_token}` } })
    ctx.status = answer.ok ? 200 : 502
    ctx.body = answer.ok
      ? await answer.json()
      : { error: 'server_error', error_description: 'The hubs are not to be had.' }
  }

  return app
}

if (import.meta.filename === process.argv[1]) {
  const { config } = await loadConfig()
  createExample(config).listen(config.port, config.host)
}
