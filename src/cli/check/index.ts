/**
 * Tests the settings with the provider, with Redis and on this machine. Each check is a function that returns
 * findings. `errors.ts` and `redis-state.ts` are helpers of the checks, and `report.ts` prints the findings.
 */
import type { Environment } from '../../config/environment.js'
import type { LoadedConfig } from '../../config/load.js'
import { callback, port } from './callback-and-port.js'
import { login, logout } from './login-and-logout.js'
import { client, clock, endpoints, openProvider, outbound, type Provider, userInfo } from './provider.js'
import { proxy } from './proxy.js'
import { redis } from './redis.js'
import { openid, refresh, scopes } from './refresh-and-scopes.js'
import type { Finding } from './report.js'
import { accessList, extend, settings, tls, wwwroot } from './settings.js'

type Found = Finding | readonly Finding[]

/** Runs all checks at the same time. Yields the findings in a fixed order, without waiting for later checks. */
export async function* findings(loaded: LoadedConfig, env: Environment): AsyncGenerator<Finding> {
  const { config } = loaded
  const provider = openProvider(config, Date.now)
  const pending: readonly (Found | Promise<Found>)[] = [
    settings(loaded),
    callback(config),
    scopes(config, provider.mode),
    openid(loaded, provider.mode),
    accessList(config),
    tls(env),
    port(config),
    wwwroot(config),
    extend(config),
    redis(config),
    proxy(config),
    ...checkProvider(provider)
  ]
  // The loop below reports the error of a failed check. Until then, this handler prevents an unhandled rejection.
  Promise.all(pending).catch(() => {})
  try {
    for (const found of pending) yield* [await found].flat()
  } finally {
    provider.transport.close()
  }
}

function checkProvider(provider: Provider): readonly Promise<Found>[] {
  const found = endpoints(provider)
  const answers = [outbound, login, client, userInfo, refresh, logout].map(async check =>
    // These checks need the metadata. If the metadata cannot be loaded, only the check `endpoints` reports the error.
    provider.idp.metadata().then(
      (): Promise<Found> => check(provider),
      () => []
    )
  )
  const readings = Promise.all([found, ...answers]).then(() => clock(provider.clockReadings))
  return [found, ...answers, readings]
}
