/** A server as the command line starts it: the listening process, and a demo identity provider where one is wanted. */
import { pino } from 'pino'
import type { Config } from './config/settings.js'
import { logOptions, standardOutput } from './log.js'
import { type DemoChoices, openDemo } from './open-demo.js'
import {
  type RunningServer as ListeningServer,
  startServer as listenAndServe,
  type StartOptions as ServeOptions
} from './server.js'

export interface StartOptions extends ServeOptions {
  /**
   * Runs a demo identity provider in this process and logs people in there, whatever the settings say of the real one.
   * `loadConfig({ demo: true })` gives settings for it without any being set.
   */
  readonly demo?: boolean | DemoChoices
}

export interface RunningServer extends ListeningServer {
  /** The callback URL in effect. */
  readonly callbackUrl: string
  /** The address of the demo identity provider, if there is one. */
  readonly demoUrl: string | undefined
}

/**
 * Starts what the command line starts. Signals are left to the caller: `close()` is for SIGTERM, `replaceSecrets()` for
 * SIGHUP. Rejects with Node's own error (`EADDRINUSE`, `EACCES`, …) when a port cannot be had; the error has
 * `listener: 'metrics'` or `listener: 'demo'` when it was the port of the metrics or of the demo.
 */
export async function startServer(config: Config, options: StartOptions = {}): Promise<RunningServer> {
  const { demo = false, ...serving } = options
  if (demo === false) {
    const server = await listenAndServe(config, serving)
    return { ...server, callbackUrl: config.platform.callbackUrl, demoUrl: undefined }
  }
  const log = serving.log ?? pino(logOptions(config.log.level), standardOutput())
  const open = await openDemo(config, demo === true ? {} : demo, log)
  const server = await listenAndServe(open.config, { ...serving, log, isDemo: true }).catch(async (error: unknown) => {
    await open.close()
    throw error
  })
  const { clientSecret, callbackUrl } = open.config.platform
  return {
    ...server,
    callbackUrl,
    demoUrl: open.url,
    replaceSecrets: fresh => server.replaceSecrets({ ...fresh, platform: { ...fresh.platform, clientSecret } }),
    async close() {
      await server.close()
      await open.close()
    }
  }
}
