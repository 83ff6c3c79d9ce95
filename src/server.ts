/** The listening process: limits on what clients may send, and an end that finishes what was begun. */
import http, { type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Logger } from 'pino'
import { assemble } from './app.js'
import type { Config } from './config/settings.js'
import { listenForScrapes } from './metrics/listener.js'
import { type AppParts, createServices } from './services.js'

export interface RunningServer {
  readonly port: number
  /** Where `/metrics` is, when they are on. */
  readonly metricsPort: number | undefined
  /** Where a browser on this machine reaches it. */
  readonly url: string
  /** From now on the session secrets and the client secret are those of `fresh`; its other settings are not looked at. */
  replaceSecrets(fresh: Config): void
  /**
   * Ends as a deployment wants it: says so on `/readyz`, goes on for `shutdown.delaySeconds`, finishes the requests
   * under way within `shutdown.graceSeconds`, then closes what is left. Resolves when everything has ended.
   */
  close(): Promise<void>
}

const LIMITS = {
  maxHeaderSize: 32 * 1024,
  headersTimeout: 15_000,
  requestTimeout: 30_000,
  // Longer than the 60 seconds after which load balancers usually let go, so that they never send into a closing socket.
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 5_000
}

/** Rejects with Node's own error (`EADDRINUSE`, `EACCES`, …) when the port cannot be had. */
export async function startServer(config: Config, parts: Partial<AppParts> = {}): Promise<RunningServer> {
  const prometheus = config.metrics.port === undefined ? undefined : await createPrometheus()
  const services = createServices(config, { ...(prometheus && { metrics: prometheus }), ...parts })
  const { log, transport, coordination } = services
  prometheus?.watchStore(() => coordination.status().store)
  let draining = false
  const app = assemble(services, () => draining)
  const handle = app.callback()
  const server = http.createServer(LIMITS, (request, response) => {
    if (draining) response.shouldKeepAlive = false
    void handle(request, response)
  })
  server.on('clientError', (error, socket) => answerClientError(error, socket as Socket, log))
  const scrapes = await openListeners().catch(async (error: unknown) => {
    server.close()
    await coordination.close()
    throw error
  })
  transport.warmUp().catch(() => {})

  async function openListeners() {
    await listen(server, config)
    const { port, host } = config.metrics
    return prometheus && port !== undefined ? listenForScrapes(prometheus, { port, host }) : undefined
  }

  const { port } = server.address() as AddressInfo
  let closing: Promise<void> | undefined
  async function close() {
    draining = true
    await pause(config.shutdown.delaySeconds * 1000)
    await end(server, config.shutdown.graceSeconds * 1000)
    await coordination.close()
    transport.close()
    await scrapes?.close()
  }
  return {
    port,
    metricsPort: scrapes?.port,
    url: `http://${config.host?.includes(':') ? `[${config.host}]` : (config.host ?? 'localhost')}:${port}`,
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
    server.listen({ port, ...(host !== undefined && { host }) }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function end(server: Server, graceMs: number): Promise<void> {
  return new Promise(resolve => {
    const deadline = setTimeout(() => server.closeAllConnections(), graceMs)
    server.close(() => {
      clearTimeout(deadline)
      resolve()
    })
    server.closeIdleConnections()
  })
}

function pause(ms: number): Promise<void> {
  return ms > 0 ? new Promise(resolve => setTimeout(resolve, ms)) : Promise.resolve()
}

const CLIENT_ERRORS: Readonly<Record<string, readonly [status: string, error: string, description: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'invalid_request', 'The headers pass 32 KiB.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'invalid_request', 'The request did not arrive in time.']
}

/** What never became a request: answered in the same form as every other error, and the connection closed. */
function answerClientError(error: NodeJS.ErrnoException, socket: Socket, log: Logger): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const malformed = ['400 Bad Request', 'invalid_request', 'The request is not well-formed HTTP.'] as const
  const [status, code, description] = CLIENT_ERRORS[error.code ?? ''] ?? malformed
  log.info({ event: 'client_error', status: Number(status.slice(0, 3)), code: error.code }, 'request refused')
  const body = JSON.stringify({ error: code, error_description: description })
  const headers = [
    `HTTP/1.1 ${status}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff'
  ]
  socket.end(`${headers.join('\r\n')}\r\n\r\n${body}`)
}
