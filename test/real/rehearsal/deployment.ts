// Two replicas of the program behind the shipped nginx configuration, with Redis and a strict identity provider.
import type { ExecutionContext } from 'ava'
import { createBrowser } from '../../helpers/browser.js'
import type { selfSignedCertificate } from '../../helpers/certificate.js'
import { defaultCallbackUrl, publicOrigin } from '../../helpers/config.js'
import { eventually } from '../../helpers/eventually.js'
import { createHostileIdp, type HostileIdpOptions } from '../../helpers/hostile-idp/index.js'
import { freePort } from '../../helpers/ports.js'
import { environmentFor, startProgram } from '../../helpers/program.js'
import { startRedis } from '../../helpers/redis.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { startNginx } from '../gateways/gateways.js'

// Half of the lifetime of the tokens. They are refreshed after it, and the other half is longer than a busy machine delays a refresh
// or a request.
const HALF_LIFETIME_SECONDS = 10

interface DeploymentOptions extends HostileIdpOptions {
  readonly env?: Readonly<Record<string, string>>
}

export async function deploy(t: ExecutionContext, options: DeploymentOptions = {}) {
  const idp = await createHostileIdp(t, {
    callbackUrl: defaultCallbackUrl,
    accessTokenLifetimeSeconds: 2 * HALF_LIFETIME_SECONDS,
    ...options
  })
  const redis = await startRedis(t)
  const cwd = await tempFolder(t, { 'wwwroot/index.html': '<!doctype html><title>The application</title>' })
  const ports = [await freePort(), await freePort()]
  const env = {
    ...environmentFor(idp, defaultCallbackUrl),
    PLATFORM_AUTH_MODE: 'dual',
    PLATFORM_AUTH_REFRESH_BEFORE_EXPIRY: String(HALF_LIFETIME_SECONDS),
    REDIS_URL: redis.url,
    ...options.env
  }
  const start = async (port: number) => {
    const program = await startProgram(t, { cwd, env: { ...env, PORT: String(port) } })
    await eventually(async () => (await fetch(`${program.url}/readyz`)).status === 200)
    return program
  }
  const replicas = await Promise.all(ports.map(start))
  const proxy = await startNginxFor(t, ports)
  return {
    idp,
    replicas,
    newBrowser: () => createBrowser(t, { origin: publicOrigin, connectTo: { [publicOrigin]: proxy.url } }),
    /** Starts a new process in place of one that has ended. Resolves when it is ready. */
    async startAgain(index: number) {
      replicas[index] = await start(ports[index] ?? 0)
    }
  }
}

/** Starts the shipped nginx configuration in front of these replicas. */
export function startNginxFor(
  t: ExecutionContext,
  ports: readonly number[],
  certificate?: ReturnType<typeof selfSignedCertificate>
) {
  const addresses = ports.map((port, index) => [`server-${index + 1}:8080`, port] as const)
  return startNginx(t, 'deploy/proxy/nginx.conf', Object.fromEntries(addresses), undefined, certificate)
}
