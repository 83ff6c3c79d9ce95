/** The two ways to run this server in your application: as a Koa application, or as a whole server like that of the command line. */
import type Koa from 'koa'
import { assemble } from '../app.js'
import { requireComplete } from '../config/load.js'
import type { Config } from '../config/settings.js'
import { type DemoOptions, openDemo } from '../demo/open.js'
import type { Extension } from '../web/routes/extension.js'
import { type AppOptions, createServices, type ServiceOptions } from './create-services.js'
import { createLog } from './log.js'
import { type ListeningServer, serve } from './serve.js'

/**
 * Creates the server as a Koa application. Add custom routes with `app.use()`, and start it with `app.listen()`.
 * The module in the setting `extension` is not loaded, because only `startServer` can wait for an import.
 * @param options a clock or a logger that replaces the default one
 * @throws {ConfigError} if `config` lacks a setting
 */
export function createApp(config: Config, options: Partial<AppOptions> = {}): Koa {
  requireComplete(config)
  return assemble(createServices(config, options), true)
}

export interface StartOptions extends Partial<AppOptions> {
  /**
   * Adds custom routes with `app.use`. They run after the routes of the server. Put `requireTokens` before each route
   * that needs tokens.
   */
  readonly extension?: Extension
  /**
   * Runs a demo identity provider in this process. Logins use it instead of the provider in the settings.
   * `loadConfig({ demo: true })` returns suitable settings even if none are set.
   */
  readonly demo?: boolean | DemoOptions
}

export interface RunningServer extends ListeningServer {
  /** The callback URL in use. If the demo runs, port 0 in the URL has been replaced with the port of the server. */
  readonly callbackUrl: string
  /** The URL of the demo identity provider, if there is one. */
  readonly demoUrl: string | undefined
}

/**
 * Starts the same server as the command line. The caller handles signals: call `close()` on SIGTERM and
 * `replaceSecrets()` on SIGHUP. Rejects with Node's error (`EADDRINUSE`, `EACCES`, …) if a port cannot be used. For the
 * metrics port, the forward-auth port or the demo port, the error has the property `listener: 'metrics'`, `listener:
 * 'forwardAuth'` or `listener: 'demo'`. Rejects with ConfigError if `config` lacks a setting.
 */
export async function startServer(config: Config, options: StartOptions = {}): Promise<RunningServer> {
  requireComplete(config)
  return start(config, options)
}

/** Does the same as `startServer`, with an option that only this package uses. */
export async function start(
  config: Config,
  options: StartOptions & Partial<Pick<ServiceOptions, 'tracing'>>
): Promise<RunningServer> {
  const { demo = false, ...rest } = options
  const log = rest.log ?? createLog({ ...config.log, format: 'json' })
  const opened = demo === false ? undefined : await openDemo(config, demo === true ? {} : demo, log)
  const used = opened?.config ?? config
  const served = { ...rest, log, demo: opened, reserved: opened?.reserved }
  const server = await serve(used, served).catch(async (error: unknown) => {
    await opened?.close()
    throw error
  })
  const { clientSecret, callbackUrl } = used.platform
  return {
    ...server,
    callbackUrl,
    demoUrl: opened?.url,
    // The client secret of a demo does not come from the settings, so the settings must not replace it.
    replaceSecrets: fresh =>
      server.replaceSecrets(opened ? { ...fresh, platform: { ...fresh.platform, clientSecret } } : fresh),
    async close(reason) {
      await server.close(reason)
      await opened?.close()
    }
  }
}
