// Starts whole servers as replicas of one deployment, with one clock, one provider and one Redis.
import type { ExecutionContext } from 'ava'
import type { Browser, BrowserResponse } from '../helpers/browser.js'
import { createClock } from '../helpers/clock.js'
import { defaultCallbackUrl, type TestSettings } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { createHostileIdp, type HostileIdp } from '../helpers/hostile-idp/index.js'
import { startRedis } from '../helpers/redis.js'
import { startTestServer, type TestServer, type TestServerOptions } from '../helpers/server.js'

interface DeploymentOptions extends Omit<TestServerOptions, 'idp' | 'clock'> {
  readonly redisArguments?: readonly string[]
}

/**
 * Starts Redis and a provider. `start` starts one more server, with settings in addition to those of the deployment, and perhaps
 * another connection to Redis.
 */
export async function startDeployment(
  t: ExecutionContext,
  { redisArguments = [], settings = {}, ...options }: DeploymentOptions = {}
) {
  const redis = await startRedis(t, redisArguments)
  const clock = createClock()
  const callbackUrl = settings.platform?.callbackUrl ?? defaultCallbackUrl
  const idp = await createHostileIdp(t, { now: clock.now, callbackUrl })
  const start = (more: TestSettings = {}, connection: TestServerOptions['redis'] = options.redis) => {
    const session = { ...settings.session, ...more.session }
    const merged = { redis: { url: redis.url }, ...settings, ...more, session }
    return startTestServer(t, { ...options, idp, clock, settings: merged, redis: connection })
  }
  return { redis, clock, idp, start }
}

/** Starts a deployment with two servers. */
export async function startServers(t: ExecutionContext, options?: DeploymentOptions) {
  const deployment = await startDeployment(t, options)
  return { ...deployment, servers: [await deployment.start(), await deployment.start()] as const }
}

/** A browser with the same cookies whose requests go to this server. */
export function copyAt({ connect }: Pick<TestServer, 'connect'>, browser: Browser): Browser {
  const copy = browser.clone()
  connect(copy)
  return copy
}

/** The status of a request for the profile, which needs a session with valid tokens. */
export async function profileStatus(browser: Browser): Promise<number> {
  return (await browser.fetch('/api/auth/profile')).statusCode
}

/** Asserts that the browser keeps its session and may send the request again. */
export function mayComeBack(t: ExecutionContext, { statusCode, headers, setCookies }: BrowserResponse): void {
  t.is(statusCode, 503)
  t.truthy(headers['retry-after'])
  t.deepEqual(setCookies, [])
}

/** Resolves when no refresh token is valid at the provider. */
export async function allRevoked(idp: HostileIdp): Promise<void> {
  await eventually(() => idp.issued.refreshTokens.every(({ value }) => !idp.isAlive(value)))
}
