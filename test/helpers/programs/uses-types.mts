import Router from '@koa/router'
import {
  type Config,
  ConfigError,
  createApp,
  loadConfig,
  type RunningServer,
  requireTokens,
  startServer,
  type TokenObject
} from 'platform-auth-server'
import { startTestServer, type TestBrowser } from 'platform-auth-server/testing'

const { config } = await loadConfig({ env: {}, cwd: '.' })
const router = new Router()
router.get('/api/hubs', requireTokens, ctx => {
  const { access_token }: TokenObject = ctx.state.tokens.internal
  const secondsLeft: number = ctx.state.tokens.public.expires_in
  // @ts-expect-error
  ctx.state.tokens.internal.acces_token
  // @ts-expect-error
  ctx.state.tokens.intenal
  // @ts-expect-error
  const text: string = ctx.state.tokens.internal.expires_in
  ctx.body = { access_token, secondsLeft, text }
})
const app = createApp(config)
app.use(router.routes())
app.use(requireTokens).use(ctx => {
  ctx.body = ctx.state.tokens.internal.access_token
  // @ts-expect-error
  ctx.body = ctx.state.tokens.internal.acces_token
})
// @ts-expect-error
createApp(config, { store: undefined })
const port: Config['port'] = config.port
app.listen(port)
const server: RunningServer = await startServer(config, {
  extension(app) {
    app.use(requireTokens)
    // @ts-expect-error
    app.nothing()
  }
})
const url: string = server.url
server.replaceSecrets(config)
const closed: Promise<void> = server.close()
// @ts-expect-error
server.nothing()
// @ts-expect-error
app.nothing()
// @ts-expect-error
config.nothing
const testServer = await startTestServer({ settings: { mode: 'dual' } })
const browser: TestBrowser = await testServer.signIn('Ada Lovelace')
const response: Response = await browser.fetch('/api/hubs')
// @ts-expect-error
browser.nothing()

export { ConfigError, closed, response, url }
