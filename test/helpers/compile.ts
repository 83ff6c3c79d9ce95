// Compiles TypeScript as a user of the package does.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { repository } from './repository.js'

/** Type-checks files of `folder` with `strict` and writes no output. */
export function compile(folder: string, files: readonly string[], settings = ['--module', 'nodenext']) {
  const compiler = join(repository, 'node_modules/typescript/bin/tsc')
  const options = ['--noEmit', '--strict', '--target', 'es2023', '--types', 'node', ...settings]
  const { status, stdout } = spawnSync(process.execPath, [compiler, ...options, ...files], {
    cwd: folder,
    encoding: 'utf8'
  })
  return { status, output: stdout }
}

/**
 * A program that compiles only if the types of the package are right. `@ts-expect-error` is an error if the next line
 * compiles, so the program also fails when a type has become `any`.
 */
export const programThatUsesTypes = `
import Router from '@koa/router'
import {
  createApp, loadConfig, requireTokens, startServer, ConfigError, type Config, type RunningServer, type TokenObject
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
  ctx.body = { access_token, secondsLeft }
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
export { ConfigError, response }
`

/** A CommonJS module that imports the package in the way that compiles with every setting of \`module\`. */
export const commonJsProgram = `
import type { Config } from 'platform-auth-server' with { 'resolution-mode': 'import' }
async function start() {
  const { loadConfig, startServer } = await import('platform-auth-server')
  const { config }: { readonly config: Config } = await loadConfig()
  return startServer(config)
}
void start()
`
