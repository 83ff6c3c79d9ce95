// Starts whole servers as replicas of one deployment, with one clock, one provider and one Redis.
import type { ExecutionContext } from 'ava'
import { createClock } from '../helpers/clock.js'
import { defaultCallbackUrl, type TestSettings } from '../helpers/config.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { startRedis } from '../helpers/redis.js'
import { startTestServer, type TestServerOptions } from '../helpers/server.js'

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
