// The programs that every storm needs: a provider, and servers behind a load balancer. The storm starts Redis.
import { createBrowser } from '../../helpers/browser.js'
import { createCookieJar } from '../../helpers/cookie-jar.js'
import { environmentWithEndpoints } from '../../helpers/program.js'
import { createRandom } from '../../helpers/random.js'
import type { Teardown } from '../../helpers/scope.js'
import { startFleet } from './fleet.js'
import { secretOf, startProvider } from './provider.js'
import { startProxy } from './proxy.js'

export type Mode = 'single' | 'dual'

interface StageOptions {
  readonly seed: number
  readonly mode: Mode
  readonly processes: number
  readonly redisUrl: string | undefined
  /** The time limit of the servers' requests to the provider. */
  readonly timeLimitMs: number
  /** Further settings of the process in that slot. */
  readonly environment: (slot: number) => Readonly<Record<string, string>>
}

export type Stage = Awaited<ReturnType<typeof setStage>>

/** The public URL of the application. The load balancer responds at this URL. */
export const ORIGIN = 'http://localhost:8080'
const CALLBACK_URL = `${ORIGIN}/api/auth/callback`

export async function setStage(scope: Teardown, options: StageOptions) {
  const { seed, mode, processes, redisUrl, timeLimitMs, environment } = options
  const provider = await startProvider(scope, { seed, callbackUrl: CALLBACK_URL, timeLimitMs })
  const fleet = await startFleet(scope, processes, (slot, name) => ({
    ...environmentWithEndpoints(provider.idp, CALLBACK_URL),
    PLATFORM_AUTH_MODE: mode,
    PLATFORM_CLIENT_SECRET: secretOf(name),
    PLATFORM_TIMEOUT: String(timeLimitMs / 1000),
    ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
    ...environment(slot)
  }))
  const targets = () => fleet.replicas.map(({ program }) => program)
  const proxy = await startProxy(scope, { targets, random: createRandom(seed + 3_000_000) })
  const connectTo = { [ORIGIN]: proxy.url }
  return {
    provider,
    fleet,
    proxy,
    newBrowser: () => createBrowser(scope, { origin: ORIGIN, connectTo, cookies: createCookieJar() })
  }
}

/**
 * The route that returns a token in this mode. In single mode this is the profile, because single mode has no token
 * route.
 */
export function tokenPath(mode: Mode): string {
  return mode === 'dual' ? '/api/auth/token' : '/api/auth/profile'
}
