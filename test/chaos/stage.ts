// What every scenario plays on: a provider, servers behind a proxy, and a Redis where there are several of them.
import { type Browser, createBrowser } from '../helpers/browser.js'
import { createCookieJar } from '../helpers/cookie-jar.js'
import { createRandom } from '../helpers/random.js'
import { type RedisServer, startRedis } from '../helpers/redis-server.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { type Fleet, startFleet } from './fleet.js'
import { type Provider, startProvider } from './provider.js'
import { type LoadBalancer, startProxy } from './proxy.js'
import type { Scope } from './scope.js'

export type Mode = 'single' | 'dual'

export interface StageOptions {
  readonly seed: number
  readonly mode: Mode
  readonly processes: number
  readonly withRedis: boolean
  readonly timeLimitMs: number
}

export interface Stage {
  readonly provider: Provider
  readonly fleet: Fleet
  readonly proxy: LoadBalancer
  readonly redis: RedisServer | undefined
  newBrowser(): Browser
}

/** The address people know; which server answers there is the proxy's business. */
export const ORIGIN = 'http://localhost:8080'
const CALLBACK_URL = `${ORIGIN}/api/auth/callback`

export async function setStage(scope: Scope, options: StageOptions): Promise<Stage> {
  const { seed, mode, processes, withRedis, timeLimitMs } = options
  const redis = withRedis ? await startRedis(scope) : undefined
  const provider = await startProvider(scope, { seed, callbackUrl: CALLBACK_URL, timeLimitMs })
  const fleet = await startFleet(scope, {
    size: processes,
    mode,
    idp: provider.idp,
    callbackUrl: CALLBACK_URL,
    timeLimitMs,
    redisUrl: redis?.url,
    cwd: await tempFolder(scope)
  })
  const proxy = await startProxy(scope, { targets: () => fleet.replicas, random: createRandom(seed + 3_000_000) })
  return {
    provider,
    fleet,
    proxy,
    redis,
    newBrowser: () =>
      createBrowser(scope, { origin: ORIGIN, connectTo: { [ORIGIN]: proxy.url }, cookies: createCookieJar() })
  }
}

/** The route that needs tokens in this mode and, where possible, nothing else. */
export function tokenPath(mode: Mode): string {
  return mode === 'dual' ? '/api/auth/token' : '/api/auth/profile'
}
