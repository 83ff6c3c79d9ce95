/** The listening process: limits on what clients may send, and an end that finishes what was begun. */
import http, { type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { assemble, requireTokens } from './app.js'
import { localUrlOf } from './config/addresses.js'
import type { Config } from './config/settings.js'
import { limitBodies } from './http/body-timeout.js'
import { answerClientErrors } from './http/client-errors.js'
import { watchConnections } from './http/connections.js'
import { type Extension, extensionTools, loadExtension } from './http/extension.js'
import { inTurn } from './http/pipelining.js'
import { loadKoaStatic } from './http/static-files.js'
import { listenForScrapes } from './metrics/listener.js'
import { type AppParts, createServices } from './services.js'
import { within } from './support/within.js'

export interface StartOptions extends Partial<AppParts> {
  /** Routes of your own (`app.use`): they come after ours, with `requireTokens` in front of those that need tokens. */
  readonly extend?: Extension
}

export interface RunningServer {
  readonly port: number
  /** Where `/metrics` is, when they are on. */
  readonly metricsPort: number | undefined
  /** Where gateways ask, when forward-auth is on. */
  readonly forwardAuthPort: number | undefined
  /** Where a browser on this machine reaches it. */
  readonly url: string
  /** From now on the session secrets and the client secret are those of `fresh`; its other settings are not looked at. */
  replaceSecrets(fresh: Config): void
  /**
   * Ends as a deployment wants it: says so on `/readyz`, goes on for `shutdown.delaySeconds`, finishes the requests
   * and revocations under way within `shutdown.graceSeconds`, then closes what is left. Resolves when everything has ended.
   */
  close(): Promise<void>
}

const LIMITS = {
  maxHeaderSize: 32 * 1024,
  headersTimeout: 15_000,
  requestTimeout: 30_000,
  // Longer than the 60 seconds after which load balancers usually let go, so that they never send into a closing socket.
  keepAliveTimeout: 75_000,
  // For an answer of which nothing more is read; else its connection and its file stay open for ever. The system's buffers
  // hold megabytes, and who reads some kilobytes a second empties them that slowly.
  unreadTimeout: 300_000,
  connectionsCheckingInterval: 5_000
}

/** The end of the grace, when nothing is answered any more: as long as a slow store may take, and not noticed otherwise. */
const LAST_WORK_MS = 500

/**
 * What the command line runs. Signals are left to the caller: `close()` is for SIGTERM, `replaceSecrets()` for SIGHUP.
 * Rejects with Node's own error (`EADDRINUSE`, `EACCES`, …) when the port cannot be had; it has `listener: 'metrics'` or
 * `listener: 'forwardAuth'` when that was the port of the metrics or of forward-auth.
 * @param limits for tests that cannot wait as long as a slow client may take
 */
export async function startServer(
  config: Config,
  { extend, ...parts }: StartOptions = {},
  limits: Partial<typeof LIMITS> = {}
): Promise<RunningServer> {
  const prometheus = config.metrics.port === undefined ? undefined : await createPrometheus()
  const services = createServices(config, { ...(prometheus && { metrics: prometheus }), ...parts })
  const { log, transport, coordination, background, ending } = services
  prometheus?.watchStore(() => coordination.status().store)
  let draining = false
  const handle = await assembleAll().catch(async (error: unknown) => {
    await coordination.close()
    throw error
  })
  // A request goes on although its client has gone: a refresh that it began belongs to the whole deployment.
  let underWay = 0
  let lastHasEnded = () => {}
  const ended = () => {
    underWay -= 1
    if (underWay === 0) lastHasEnded()
  }
  const patience = { ...LIMITS, ...limits }
  const pipelining = inTurn(
    (request, response) => {
      underWay += 1
      void handle(request, response).then(ended, ended)
    },
    () => log.info({ event: 'client_error', code: 'TOO_MANY_PIPELINED' }, 'connection closed')
  )
  // Node's own answers to requests without a host and with an unknown expectation lack our headers, so ours are sent. Node's time
  // limit applies to the whole of a request, however steadily its body arrives, so `limitBodies` takes its place.
  const options = { ...patience, requireHostHeader: false, requestTimeout: 0 }
  const server = http.createServer(options, pipelining.listener)
  server.on('checkExpectation', pipelining.listener)
  const connections = watchConnections(server, patience)
  limitBodies(server, patience)
  answerClientErrors(server, pipelining, log)
  const opened: { close(): Promise<void> }[] = []
  const { scrapes, gateways } = await openListeners().catch(async (error: unknown) => {
    server.close()
    await Promise.all(opened.map(listener => listener.close()))
    await coordination.close()
    throw error
  })

  async function assembleAll() {
    const app = assemble(services, () => draining)
    const tools = extensionTools(requireTokens, log)
    if (config.extend !== undefined) await (await loadExtension(config.extend))(app, tools)
    await extend?.(app, tools)
    return app.callback()
  }

  async function openListeners() {
    await listen(server, config)
    const gateways = await openForwardAuth()
    if (gateways) opened.push({ close: () => gateways.close(0) })
    const { port, host } = config.metrics
    const scrapes = prometheus && port !== undefined ? await listenForScrapes(prometheus, { port, host }) : undefined
    return { scrapes, gateways }
  }

  // The module is loaded only if forward-auth is on.
  async function openForwardAuth() {
    const { port, host } = config.forwardAuth
    if (port === undefined) return undefined
    const { listenForGateways } = await import('./http/forward-auth.js')
    return listenForGateways(services, { port, host })
  }

  const { port } = server.address() as AddressInfo
  function allHaveEnded() {
    return new Promise<void>(resolve => {
      lastHasEnded = resolve
      if (underWay === 0) resolve()
    })
  }

  let closing: Promise<void> | undefined
  async function close() {
    draining = true
    connections.drain()
    await pause(config.shutdown.delaySeconds * 1000)
    // An event stream would last for all of the grace. Ended now, its browser connects again elsewhere.
    ending.stop()
    const graceMs = config.shutdown.graceSeconds * 1000
    const lastMs = Math.min(LAST_WORK_MS, graceMs / 2)
    const connectionsEnded = Promise.all([connections.end(graceMs - lastMs), gateways?.close(graceMs - lastMs)])
    // What a request began in the background, revocations above all, is finished like the request itself.
    const workEnded = Promise.all([connectionsEnded, allHaveEnded()]).then(() =>
      Promise.all([background.ended(), coordination.idle()])
    )
    await Promise.all([connectionsEnded, within(graceMs - lastMs, workEnded).catch(() => {})])
    // Browsers that were cut off just now may have missed their renewed session; it is still being kept for them.
    await within(lastMs, background.ended()).catch(() => {})
    await coordination.close()
    transport.close()
    await ending.close()
    await scrapes?.close()
  }
  // The first request for a file should not wait for it; if it cannot be loaded, that request is told.
  loadKoaStatic().catch(() => {})
  return {
    port,
    metricsPort: scrapes?.port,
    forwardAuthPort: gateways?.port,
    url: localUrlOf({ port, host: config.host }),
    replaceSecrets: services.replaceSecrets,
    close() {
      closing ??= close()
      return closing
    }
  }
}

// Loaded only when asked for: most servers are not watched, and all of them should start quickly.
async function createPrometheus() {
  const { createPrometheusMetrics } = await import('./metrics/prometheus.js')
  return createPrometheusMetrics()
}

function listen(server: Server, { port, host }: Config): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    // Everybody's pages connect again at the same moment after a restart; what the default of 511 leaves out comes late.
    server.listen({ port, backlog: 2048, ...(host !== undefined && { host }) }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function pause(ms: number): Promise<void> {
  return ms > 0 ? new Promise(resolve => setTimeout(resolve, ms)) : Promise.resolve()
}
