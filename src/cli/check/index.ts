/**
 * Tests the settings with the provider, with Redis and on this machine. Most files in `findings/` contain one check. The other
 * files in this folder are helpers.
 */
import type { Environment } from '../../config/environment.js'
import type { LoadedConfig } from '../../config/load.js'
import type { Finding } from './finding.js'
import { access } from './findings/access.js'
import { callback } from './findings/callback.js'
import { client } from './findings/client.js'
import { clock } from './findings/clock.js'
import { endpoints } from './findings/endpoints.js'
import { extend } from './findings/extend.js'
import { login } from './findings/login.js'
import { logout } from './findings/logout.js'
import { openid } from './findings/openid.js'
import { outbound } from './findings/outbound.js'
import { port } from './findings/port.js'
import { proxy } from './findings/proxy.js'
import { redis } from './findings/redis.js'
import { refresh } from './findings/refresh.js'
import { scopes } from './findings/scopes.js'
import { sessionSize } from './findings/session-size.js'
import { settings } from './findings/settings.js'
import { tls } from './findings/tls.js'
import { userInfo } from './findings/user-info.js'
import { wwwroot } from './findings/wwwroot.js'
import { openProvider, type Provider } from './provider.js'

/** Runs all checks at the same time. Yields the findings in a fixed order, without waiting for later checks. */
export async function* findings(loaded: LoadedConfig, env: Environment): AsyncGenerator<Finding> {
  const { config } = loaded
  const provider = openProvider(config, Date.now)
  const pending: readonly (Finding[] | Promise<Finding[]>)[] = [
    settings(loaded),
    callback(config),
    scopes(config, provider.mode),
    openid(loaded, provider.mode),
    access(config),
    tls(env),
    port(config),
    wwwroot(config),
    extend(config),
    sessionSize(config, provider.idp, Date.now),
    redis(config),
    proxy(config),
    ...checkProvider(provider)
  ]
  // The loop below reports the error of a failed check. Until then, this handler prevents an unhandled rejection.
  Promise.all(pending).catch(() => {})
  try {
    for (const found of pending) yield* await found
  } finally {
    provider.transport.close()
  }
}

function checkProvider(provider: Provider): readonly Promise<Finding[]>[] {
  const found = endpoints(provider)
  const answers = [outbound, login, client, userInfo, refresh, logout].map(async check =>
    // These checks need the metadata. If the metadata cannot be loaded, only the check `endpoints` reports the error.
    provider.idp.metadata().then(
      () => check(provider),
      () => []
    )
  )
  const readings = Promise.all([found, ...answers]).then(() => clock(provider.clockReadings))
  return [found, ...answers, readings]
}
