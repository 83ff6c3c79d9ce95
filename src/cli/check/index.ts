/**
 * Tests the settings with the provider, with Redis and on this machine. Each check is a function that returns findings.
 *
 * - `local-settings.ts`, `callback-and-port.ts`: the settings, this machine, and the targets of the API proxy
 * - `endpoints-and-clock.ts`, `login-and-logout.ts`, `client-and-refresh.ts`: the identity provider
 * - `redis-findings.ts`: Redis, whose state `redis-inspection.ts` reads
 * - `findings.ts`: the form of a finding
 * - `network-errors.ts`, `endpoint-errors.ts`: the texts about connections and requests that fail
 */

import type { LoadedConfig } from '../../config/load.js'
import type { Environment } from '../../config/sources/dot-env.js'
import type { ProviderMetadata } from '../../provider/metadata.js'
import { checkCallback, checkPort } from './callback-and-port.js'
import { checkClient, checkRefresh, checkUserInfo } from './client-and-refresh.js'
import { findingOfEndpointError } from './endpoint-errors.js'
import { checkClock, checkEndpoints, checkOutbound, openProvider, type Provider } from './endpoints-and-clock.js'
import type { Finding } from './findings.js'
import {
  checkAccessList,
  checkExtension,
  checkFiles,
  checkOpenid,
  checkProxy,
  checkScopes,
  checkSettings,
  checkTls,
  checkWwwroot
} from './local-settings.js'
import { checkLogin, checkLogout } from './login-and-logout.js'
import { checkRedis } from './redis-findings.js'

export interface NamedFinding extends Finding {
  /** The name of the check. Scripts may rely on it. */
  readonly check: string
}

type NamedResult = readonly [check: string, result: CheckResult | Promise<CheckResult>]
type CheckResult = Finding | Iterable<Finding>

/** Runs all checks in parallel. Yields the findings in a fixed order, without waiting for later checks. */
export async function* runChecks(loaded: LoadedConfig, env: Environment): AsyncGenerator<NamedFinding> {
  const { config } = loaded
  const provider = openProvider(config, Date.now)
  const pending: readonly NamedResult[] = [
    ['settings', checkSettings(loaded)],
    ['callback', checkCallback(config)],
    ['scopes', checkScopes(config, provider.mode)],
    ['scopes', checkOpenid(loaded, provider.mode)],
    ['access', checkAccessList(config)],
    ['access', checkFiles(config)],
    ['tls', checkTls(env)],
    ['port', checkPort(config)],
    ['wwwroot', checkWwwroot(config)],
    ['extension', checkExtension(config)],
    ['redis', checkRedis(config)],
    ['proxy', checkProxy(config)],
    ...checksOf(provider)
  ]
  // The loop below reports the error of a failed check. Until then, this handler prevents an unhandled rejection.
  Promise.all(pending.map(([, result]) => result)).catch(() => {})
  try {
    for (const [check, result] of pending) {
      const found = await result
      for (const finding of 'status' in found ? [found] : found) yield { check, ...finding }
    }
  } finally {
    provider.transport.close()
  }
}

function checksOf(provider: Provider): readonly NamedResult[] {
  type Check = (provider: Provider, metadata: ProviderMetadata) => CheckResult | Promise<CheckResult>
  // These checks need the metadata. If the metadata cannot be loaded, only the check `endpoints` reports the error.
  async function withMetadata(check: Check): Promise<CheckResult> {
    const metadata = await provider.metadata().catch(() => undefined)
    if (!metadata) return []
    try {
      return await check(provider, metadata)
    } catch (error) {
      return findingOfEndpointError(error, provider.config, metadata)
    }
  }
  const checks: readonly NamedResult[] = [
    ['endpoints', checkEndpoints(provider)],
    ['proxy', withMetadata(checkOutbound)],
    ['login', withMetadata(checkLogin)],
    ['client', withMetadata(checkClient)],
    ['userinfo', withMetadata(checkUserInfo)],
    ['refresh', withMetadata(checkRefresh)],
    ['logout', withMetadata(checkLogout)]
  ]
  const allDone = Promise.all(checks.map(([, result]) => result))
  return [...checks, ['clock', allDone.then(() => checkClock(provider.clockReadings))]]
}
