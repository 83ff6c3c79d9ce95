/** Starts a demo identity provider for one server, and changes the settings so that the server uses it. */
import { createServer } from 'node:http'
import type { Logger } from 'pino'
import { closeServer, listen } from '../base/listener.js'
import { type Config, settings } from '../config/settings.js'
import { parseRules } from '../config/types/proxy-rules.js'
import { AUTH_ROUTES, isLoopback } from '../config/types/urls.js'

export interface DemoOptions {
  /** The port of the demo identity provider. By default the system chooses a free port. */
  readonly port?: number | undefined
  /** The lifetime of the demo's access tokens in seconds. The default is 3599, as at Autodesk Platform Services. */
  readonly tokenLifetimeSeconds?: number | undefined
  /**
   * True if the API proxy also forwards requests to the APIs of the demo, such as `/api/hubs`. This is the default.
   * Proxy rules take precedence over custom routes, so set `apis` to false if a custom route has the same path.
   */
  readonly apis?: boolean | undefined
}

/**
 * Starts the demo identity provider. If its port cannot be used, rejects with Node's error, which then has the property
 * `listener: 'demo'`.
 */
export async function openDemo(config: Config, choices: DemoOptions, log: Logger) {
  const { port: demoPort, tokenLifetimeSeconds, apis = true } = choices
  // Only the demo needs this module, so a start without the demo does not load it.
  const { startDemo } = await import('./index.js')
  // The demo provider needs the callback URL with its port before the server listens.
  const reserved = config.port === 0 ? createServer() : undefined
  const port = reserved ? await listen(reserved, config) : config.port
  const callbackUrl = realCallbackUrl(config, port)
  const starting = startDemo({
    callbackUrl,
    log,
    backchannelLogoutUrl: config.platform.backchannelLogout
      ? callbackUrl.replace(AUTH_ROUTES.callback, AUTH_ROUTES.backchannelLogout)
      : undefined,
    port: demoPort,
    tokenLifetimeSeconds
  })
  const demo = await starting.catch(async (error: unknown) => {
    if (reserved) await closeServer(reserved)
    throw error
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
    clientAuthMethod: settings['platform.clientAuthMethod'].default
  }
  // Rules that were given as flags come first, so that they can replace those of the demo.
  const texts = [...config.apiProxy.rules.map(({ text }) => text), ...(apis ? proxyRules : [])]
  const apiProxy: Config['apiProxy'] = { ...config.apiProxy, rules: parseRules(texts).rules }
  return {
    /** The URL of the demo identity provider. */
    url: issuer,
    /**
     * The given settings with two changes: the demo is the identity provider, and `port` is a port number other than 0.
     */
    config: { ...config, port, platform, apiProxy },
    calls: demo.calls,
    /**
     * A temporary server. If the system has chosen the port, the temporary server occupies this port until the real
     * server listens.
     */
    reserved,
    /** Closes the demo and a reserved port. */
    async close() {
      if (reserved) await closeServer(reserved)
      await demo.close()
    }
  }
}

/**
 * Returns the callback URL with the port on which the server will listen. Port 0 in the URL is replaced with that port.
 * If the setting `port` is 0, the system has chosen the port, so a callback URL on this machine cannot contain the
 * right port. In this case, the port in the URL is replaced, too. Any other callback URL stays unchanged.
 */
function realCallbackUrl({ port: configuredPort, platform: { callbackUrl } }: Config, port: number): string {
  const url = new URL(callbackUrl)
  const isOnThisMachine = url.protocol === 'http:' && isLoopback(callbackUrl)
  if (url.port !== '0' && !(configuredPort === 0 && isOnThisMachine)) return callbackUrl
  url.port = String(port)
  return url.href
}
