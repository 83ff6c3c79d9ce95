/** A demo identity provider for one server, with the settings that point the server at it. */
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import type { Logger } from 'pino'
import { type Config, settings } from './config/settings.js'

export interface DemoChoices {
  /** The port of the demo identity provider; any free port unless given. */
  readonly port?: number | undefined
  /** How long its access tokens live; 3599 unless given, as on the platform. */
  readonly tokenLifetimeSeconds?: number | undefined
}

export interface OpenDemo {
  /** The address of the demo identity provider. */
  readonly url: string
  /** The given settings, with the demo in the place of the real provider and a port that is not 0. */
  readonly config: Config
  close(): Promise<void>
}

/**
 * Starts the demo identity provider. Rejects with Node's own error when its port cannot be had; the error then has
 * `listener: 'demo'`.
 */
export async function openDemo(
  config: Config,
  { port: demoPort, tokenLifetimeSeconds }: DemoChoices,
  log: Logger
): Promise<OpenDemo> {
  // The provider must know the callback URL, and with it the port, before the server listens.
  const port = config.port === 0 ? await freePort() : config.port
  const callbackUrl = withPort(config.platform.callbackUrl, port)
  // The demo is code that an ordinary start has no use for.
  const { startDemo } = await import('./demo/index.js')
  const demo = await startDemo({
    callbackUrl,
    log,
    ...(demoPort !== undefined && { port: demoPort }),
    ...(tokenLifetimeSeconds !== undefined && { tokenLifetimeSeconds })
  }).catch((error: unknown) => {
    throw error instanceof Error ? Object.assign(error, { listener: 'demo' }) : error
  })
  const { issuer, clientId, clientSecret, proxyRules } = demo
  const platform: Config['platform'] = {
    ...config.platform,
    callbackUrl,
    issuer,
    clientId,
    clientSecret,
    authorizationEndpoint: undefined,
    tokenEndpoint: undefined,
    userinfoEndpoint: undefined,
    revocationEndpoint: undefined,
    endSessionEndpoint: undefined,
    clientAuthentication: settings['platform.clientAuthentication'].default
  }
  // Rules that were given as flags come first, so that they can replace those of the demo.
  const proxy: Config['proxy'] = { ...config.proxy, routes: [...config.proxy.routes, ...proxyRules] }
  return { url: issuer, config: { ...config, port, platform, proxy }, close: () => demo.close() }
}

/** Port 0 stands for the port that the server will listen on. */
function withPort(address: string, port: number): string {
  const url = new URL(address)
  if (url.port !== '0') return address
  url.port = String(port)
  return url.href
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}
