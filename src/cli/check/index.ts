/**
 * Tests the settings with the provider, with Redis and on this machine. Each check is a function that returns
 * findings. `errors.ts` and `redis-state.ts` are helpers of the checks, and `report.ts` prints the findings.
 */

import type { LoadedConfig } from '../../config/load.js'
import type { Environment } from '../../config/sources.js'
import { checkCallback, checkPort } from './callback-and-port.js'
import { checkLogin, checkLogout } from './login-and-logout.js'
import {
  checkClient,
  checkClock,
  checkEndpoints,
  checkOutbound,
  checkUserInfo,
  openProvider,
  type Provider
} from './provider.js'
import { checkProxy } from './proxy.js'
import { checkRedis } from './redis.js'
import { checkOpenid, checkRefresh, checkScopes } from './refresh-and-scopes.js'
import type { Finding } from './report.js'
import { checkAccessList, checkExtend, checkSettings, checkTls, checkWwwroot } from './settings.js'

type Found = Finding | readonly Finding[]

/** Runs all checks at the same time. Yields the findings in a fixed order, without waiting for later checks. */
export async function* findings(loaded: LoadedConfig, env: Environment): AsyncGenerator<Finding> {
  const { config } = loaded
  const provider = openProvider(config, Date.now)
  const pending: readonly (Found | Promise<Found>)[] = [
    checkSettings(loaded),
    checkCallback(config),
    checkScopes(config, provider.mode),
    checkOpenid(loaded, provider.mode),
    checkAccessList(config),
    checkTls(env),
    checkPort(config),
    checkWwwroot(config),
    checkExtend(config),
    checkRedis(config),
    checkProxy(config),
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
  const found = checkEndpoints(provider)
  const answers = [checkOutbound, checkLogin, checkClient, checkUserInfo, checkRefresh, checkLogout].map(async check =>
    // These checks need the metadata. If the metadata cannot be loaded, only the check `endpoints` reports the error.
    provider.idp.metadata().then(
      (): Promise<Found> => check(provider),
      () => []
    )
  )
  const readings = Promise.all([found, ...answers]).then(() => checkClock(provider.clockReadings))
  return [found, ...answers, readings]
}
