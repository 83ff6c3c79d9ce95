/** The parts of the server, made from the configuration in the order they need each other. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Logger, pino } from 'pino'
import { createAccessRule } from './auth/access.js'
import { createCodeExchanges } from './auth/code-exchange.js'
import { createProfiles } from './auth/profiles.js'
import { createRefreshes } from './auth/refresh.js'
import { basePathOf, homeUrlOf } from './config/addresses.js'
import type { Config } from './config/settings.js'
import { STARTER_PAGE } from './config/wwwroot.js'
import type { Coordination } from './coordination/coordination.js'
import { createCoordination } from './coordination/index.js'
import { AUTH_PATH } from './http/auth-routes.js'
import { createBackground } from './http/background.js'
import { cookieNames } from './http/cookies.js'
import { createEnding } from './http/ending.js'
import { createRequestLog } from './http/request.js'
import { createIdentityProvider, type IdentityProvider } from './idp/client.js'
import { measured } from './idp/measured-transport.js'
import { createTransport } from './idp/transport.js'
import { logOptions, standardOutput } from './log.js'
import { createLoginTransactions } from './login/transaction.js'
import { type Metrics, noMetrics } from './metrics/metrics.js'
import { createMode } from './modes/index.js'
import { createKeyring } from './sealing/keyring.js'
import { createSessionCookie } from './session/session-cookie.js'

/** What comes from outside the configuration. */
export interface AppParts {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Resolves after so many milliseconds. */
  readonly wait: (ms: number) => Promise<unknown>
  readonly log: Logger
  readonly coordination: Coordination
  readonly metrics: Metrics
  /** True if the identity provider is the built-in demo. Only the starter page says so. */
  readonly isDemo: boolean
}

export type Services = ReturnType<typeof createServices>

export function createServices(config: Config, given: Partial<AppParts> = {}) {
  const { now = Date.now, metrics = noMetrics, isDemo = false } = given
  const { log = pino(logOptions(config.log.level), standardOutput()) } = given
  const { session, platform, refresh } = config
  const { maxAgeSeconds, absoluteMaxAgeSeconds } = session
  const cookies = cookieNames(session.cookieName, platform.callbackUrl)
  const basePath = basePathOf(platform.callbackUrl)

  const transport = measured(createTransport(platform.timeoutSeconds * 1000), metrics)
  const background = createBackground()
  const provider = createIdentityProvider(platform, transport)
  // Hardly anybody waits for a revocation, but a token that is to go must not outlive this process.
  const idp: IdentityProvider = {
    ...provider,
    revokeRefreshToken: refreshToken => background.add(provider.revokeRefreshToken(refreshToken))
  }
  const mode = createMode(config, idp, now, given.wait)

  const keyring = createKeyring([session.secret, ...session.previousSecrets])
  // A cookie of the other mode holds the wrong tokens; sealed for its own purpose, it is simply no session here.
  const sealer = keyring.sealer(`session cookie, ${mode.name} mode`)
  const ages = { maxAgeSeconds, absoluteMaxAgeSeconds }
  const sessionCookie = createSessionCookie({ sealer, name: cookies.session, ...ages, now, metrics })
  const transactions = createLoginTransactions(keyring.sealer('login state'), now)
  const coordination = given.coordination ?? createCoordination(config, { keyring, now, log })

  const { allow } = config.access
  const access = allow && { rule: createAccessRule(allow), idp }

  /** Takes over the secrets of `fresh`, and nothing else of it; sessions sealed with a secret still listed stay open. */
  function replaceSecrets(fresh: Config) {
    keyring.replace([fresh.session.secret, ...fresh.session.previousSecrets])
    sessionCookie.forgetOpened()
    idp.replaceClientSecret(fresh.platform.clientSecret)
  }

  return {
    config,
    isDemo,
    now,
    log,
    metrics,
    requestLog: createRequestLog(log),
    cookies,
    maxAgeSeconds,
    homePath: `${basePath}/`,
    startPagePath: hasStartPage(config) ? `${basePath}/` : undefined,
    logsRequests: config.log.requests,
    homeUrl: homeUrlOf(platform.callbackUrl),
    signInPath: `${basePath}${AUTH_PATH}/login`,
    transport,
    background,
    ending: createEnding(),
    idp,
    mode,
    offersPublicToken: mode.offersPublicToken,
    pkce: platform.pkce,
    replaceSecrets,
    sessionCookie,
    transactions,
    coordination,
    profiles: createProfiles({ mode, idp, now, keepSeconds: config.profile.keepSeconds }),
    codeExchanges: createCodeExchanges({ mode, coordination, now, ...refresh, ...(access && { access }) }),
    refreshes: createRefreshes({ mode, idp, coordination, now, metrics, maxAgeSeconds, ...refresh })
  }
}

/** False if nothing is known to answer at the start page's address, so that error pages do not lead there. */
function hasStartPage({ wwwroot = STARTER_PAGE, fallback, extend }: Config): boolean {
  return fallback !== undefined || extend !== undefined || existsSync(join(wwwroot, 'index.html'))
}
