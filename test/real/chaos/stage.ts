// The programs that every scenario needs: a provider, servers behind a load balancer, and usually Redis.
import { createBrowser } from '../../helpers/browser.js'
import { createCookieJar } from '../../helpers/cookie-jar.js'
import { createRandom } from '../../helpers/random.js'
import { startRedis } from '../../helpers/redis-server.js'
import type { Teardown } from '../../helpers/scope.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { startFleet } from './fleet.js'
import { startProvider } from './provider.js'
import { startProxy } from './proxy.js'
import { startTcpProxy } from './tcp-proxy.js'
import type { TroubleKind } from './trouble.js'

export type Mode = 'single' | 'dual'

/** The options of the command line, which decide on the variants of each scenario. */
export interface Options {
  readonly seeds: readonly number[]
  readonly processes: readonly number[]
  readonly modes: readonly Mode[]
  /** The failures in storms with four processes. */
  readonly troubles: readonly TroubleKind[]
  /** The length of each storm. */
  readonly seconds: number
  readonly users: number
  readonly full: boolean
}

export interface StageOptions {
  readonly seed?: number
  readonly mode: Mode
  readonly processes: number
  readonly withRedis: boolean
  /** Puts a TCP proxy between each process and Redis, for scenarios that disturb this connection. */
  readonly hasRedisProxies?: boolean
  /** The Redis of the process in that slot, if the scenario starts Redis itself. Then `withRedis` is false. */
  readonly redisUrl?: (slot: number) => string
  /** Arguments of redis-server. */
  readonly redisArguments?: readonly string[]
  readonly timeLimitMs: number
  /** Further settings of the process in that slot. */
  readonly environment?: (slot: number) => Readonly<Record<string, string>>
}

export type Stage = Awaited<ReturnType<typeof setStage>>

/** The public URL of the application. The load balancer responds at this URL. */
export const ORIGIN = 'http://localhost:8080'
const CALLBACK_URL = `${ORIGIN}/api/auth/callback`

export async function setStage(scope: Teardown, options: StageOptions) {
  const { seed = 1, mode, processes, withRedis, hasRedisProxies = false, redisArguments = [] } = options
  const { timeLimitMs, environment = () => ({}), redisUrl = () => redis?.url } = options
  const redis = withRedis ? await startRedis(scope, [...redisArguments]) : undefined
  // One proxy for each slot, or none.
  const redisProxies =
    redis && hasRedisProxies
      ? await Promise.all(Array.from({ length: processes }, () => startTcpProxy(scope, redis.port)))
      : []
  const provider = await startProvider(scope, { seed, callbackUrl: CALLBACK_URL, timeLimitMs })
  const fleet = await startFleet(scope, {
    size: processes,
    mode,
    idp: provider.idp,
    callbackUrl: CALLBACK_URL,
    timeLimitMs,
    redisUrl: slot => (redisProxies[slot] ? `redis://127.0.0.1:${redisProxies[slot].port}` : redisUrl(slot)),
    environment,
    cwd: await tempFolder(scope)
  })
  const proxy = await startProxy(scope, { targets: () => fleet.replicas, random: createRandom(seed + 3_000_000) })
  return {
    provider,
    fleet,
    proxy,
    redis,
    redisProxies,
    newBrowser: () =>
      createBrowser(scope, { origin: ORIGIN, connectTo: { [ORIGIN]: proxy.url }, cookies: createCookieJar() })
  }
}

/**
 * The route that returns a token in this mode. In single mode this is the profile, because single mode has no token
 * route.
 */
export function tokenPath(mode: Mode): string {
  return mode === 'dual' ? '/api/auth/token' : '/api/auth/profile'
}
