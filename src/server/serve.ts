/**
 * Runs the HTTP servers. Sets time limits for clients, and finishes the requests in progress at shutdown. `start-server` is the way
 * in for applications and for the command line, `create-services` creates what the middleware uses, and `log` the log.
 */
import http from 'node:http'
import { assemble } from '../app.js'
import { systemClock, wait, within } from '../base/clock.js'
import { closeServer, listen } from '../base/listener.js'
import { version } from '../base/package.js'
import type { Config } from '../config/settings.js'
import { localUrlOf } from '../config/types/urls.js'
import { requireDatabase } from '../sessions/index.js'
import { countRequests, ignoreStops, inTurn, limitBodyTimes } from '../web/every-request/arrivals.js'
import { respondToClientErrors } from '../web/every-request/client-errors.js'
import { CLIENT_LIMITS, type ClientLimits, watchConnections } from '../web/every-request/connections.js'
import { type ForwardAuthServer, listenForGateways } from '../web/forward-auth/forward-auth.js'
import { requireTokens } from '../web/routes/custom-routes.js'
import type { Extension } from '../web/routes/extension.js'
import { createServices, type ServiceOptions } from './create-services.js'

export interface ServeOptions extends Partial<ServiceOptions> {
  readonly extension?: Extension | undefined
  /**
   * A server that already listens on the port, so that no other process can take it. The new server takes over the
   * port.
   */
  readonly reserved?: http.Server | undefined
}

export interface ListeningServer {
  readonly port: number
  /** The port of `/metrics`, if metrics are on. */
  readonly metricsPort: number | undefined
  /** The port to which gateways send their requests, if forward-auth is on. */
  readonly forwardAuthPort: number | undefined
  /** The URL at which a browser on this machine reaches the server. */
  readonly url: string
  /**
   * Replaces the session secrets, the client secret and the client key with those in `fresh`. Ignores the other
   * settings in `fresh`.
   */
  replaceSecrets(fresh: Config): void
  /** Call this if the new settings cannot be used, so that the metric `config_last_reload_successful` shows it. */
  reloadFailed(): void
  /**
   * Shuts down. `/readyz` responds with 503 immediately. The server still accepts requests for `shutdown.delay`.
   * Then it has `shutdown.grace` to finish the requests and revocations in progress. After that it closes every
   * connection. Resolves when the shutdown is complete.
   * @param reason the reason for the log, for example `SIGTERM`
   */
  close(reason?: string): Promise<void>
}

/**
 * The last part of the grace period, in milliseconds. Connections are closed before this part, so that revocations that
 * are still in progress have this time to finish.
 */
const LAST_WORK_MS = 500

/**
 * Starts the server. The caller handles signals: `close()` is for SIGTERM, `replaceSecrets()` for SIGHUP. Rejects with
 * Node's error (`EADDRINUSE`, `EACCES`, …) if a port cannot be used. For the metrics port or the forward-auth port, the
 * error has the property `listener: 'metrics'` or `listener: 'forwardAuth'`. Rejects with ExtensionError if the module
 * of the setting `extension` cannot be used. Rejects with RedisDatabaseError if Redis refuses to select the database of
 * `redis.url`. Applications use `startServer` (start.ts).
 * @param limits shorter time limits, for tests
 */
export async function serve(
  config: Config,
  { extension, reserved, ...options }: ServeOptions = {},
  limits: Partial<ClientLimits> = {}
): Promise<ListeningServer> {
  if (!options.stores) await requireDatabase(config)
  // The module is loaded only if metrics are on, so that servers without metrics start quickly.
  const metricsModule = config.metrics.address === undefined ? undefined : await import('../base/prometheus.js')
  const prometheus = metricsModule?.createPrometheusMetrics(version())
  const services = createServices(config, { ...(prometheus && { metrics: prometheus }), ...options })
  const { log, shutdown } = services
  const handle = await assembleAll().catch(async (error: unknown) => {
    await shutdown.close()
    throw error
  })
  const requests = countRequests(handle)
  prometheus?.watch('requests_in_flight', requests.count)
  const pipelining = inTurn(requests.run, () =>
    log.debug({ event: 'client_error', reason: 'too_many_pipelined' }, 'connection closed')
  )
  const clientLimits = { ...CLIENT_LIMITS, keepAliveTimeout: config.keepAliveSeconds * 1000, ...limits }
  // By default, Node itself rejects a request without a host or with an unknown expectation. Node's responses lack the
  // headers of this server, so the application rejects these requests instead. Node's `requestTimeout` limits the whole
  // request, even if the body arrives steadily, so `limitBodyTimes` replaces it.
  const serverOptions = { ...clientLimits, requireHostHeader: false, requestTimeout: 0 }
  const server = http.createServer(serverOptions, pipelining.listener)
  server.on('checkExpectation', pipelining.listener)
  ignoreStops(server, serverOptions)
  const connections = watchConnections(server, clientLimits)
  limitBodyTimes(server, clientLimits)
  respondToClientErrors(server, pipelining, log, services)
  let gateways: ForwardAuthServer | undefined
  const { port, scrapes } = await openListeners().catch(async (error: unknown) => {
    await Promise.all([closeServer(server), gateways?.close(0)])
    await shutdown.close()
    throw error
  })

  async function assembleAll() {
    const hasCustomRoutes = config.extension !== undefined || extension !== undefined
    const app = assemble(services, hasCustomRoutes)
    if (hasCustomRoutes) {
      // Only custom routes need the package @koa/router, so other servers start without it.
      const { loadExtension, Router } = await import('../web/routes/extension.js')
      const tools = { requireTokens, Router, log }
      if (config.extension !== undefined) await (await loadExtension(config.extension))(app, tools)
      await extension?.(app, tools)
    }
    return app.callback()
  }

  async function openListeners() {
    const { metrics, forwardAuth } = config
    const port = await listen(server, { ...config, reserved })
    services.startHostSlot(port)
    if (forwardAuth.address !== undefined) {
      gateways = await listenForGateways(services, forwardAuth.address, limits)
    }
    const scrapes = prometheus && metrics.address ? await prometheus.listen(metrics.address) : undefined
    return { port, scrapes }
  }

  let closing: Promise<void> | undefined
  async function close(reason: string) {
    const startedAt = performance.now()
    shutdown.startDraining()
    log.info({ event: 'server_stopping', reason, requests: requests.count() }, 'stopping')
    connections.drain()
    if (config.shutdown.delaySeconds > 0) await wait(options.clock ?? systemClock, config.shutdown.delaySeconds * 1000)
    // An event stream would last for the whole grace period. So the server ends it early, and the browser connects to
    // another replica.
    shutdown.hooks.stop()
    const graceMs = config.shutdown.graceSeconds * 1000
    const lastMs = Math.min(LAST_WORK_MS, graceMs / 2)
    const connectionsEnded = Promise.all([connections.end(graceMs - lastMs), gateways?.close(graceMs - lastMs)])
    // A request may have begun work in the background, such as a revocation. Shutdown therefore also waits for this
    // work.
    const workEnded = Promise.all([connectionsEnded, requests.ended()]).then(() => shutdown.workEnded())
    let isWorkDone = true
    const workOrGrace = within(graceMs - lastMs, workEnded).catch(() => {
      isWorkDone = false
    })
    await Promise.all([connectionsEnded, workOrGrace])
    await within(lastMs, shutdown.revocationsEnded()).catch(() => {})
    await shutdown.close()
    await scrapes?.close()
    const duration_ms = Math.round(performance.now() - startedAt)
    log.info({ event: 'server_stopped', duration_ms, all_work_done: isWorkDone }, 'stopped')
  }

  return {
    port,
    metricsPort: scrapes?.port,
    forwardAuthPort: gateways?.port,
    url: localUrlOf({ port, host: config.host }),
    replaceSecrets: services.replaceSecrets,
    reloadFailed: services.reloadFailed,
    close(reason = 'close_called') {
      closing ??= close(reason)
      return closing
    }
  }
}
