import { createServer } from 'node:http'
import { errorCode } from '../../base/error-code.js'
import { closeServer, listen } from '../../base/listener.js'
import type { Config } from '../../config/settings.js'
import { basePathOf, callbackPath, homeUrlOf, isLoopback, localNameOf, localUrlOf } from '../../config/types/urls.js'
import { explainListenError, type Listener, listeners } from '../terminal/expected-errors.js'
import { askLoopback } from '../terminal/loopback.js'
import { type Finding, failed, ok, warning } from './findings.js'

/** Reports the callback URL to register, and every conflict of this URL with the settings `port` and `host`. */
export function* checkCallback({ port: listeningPort, host, platform: { callbackUrl } }: Config): Generator<Finding> {
  const url = new URL(callbackUrl)
  const isHttps = url.protocol === 'https:'
  const port = Number(url.port) || (isHttps ? 443 : 80)
  // If the callback URL leads to this machine, there is probably no proxy in front of the server.
  const isLocal = isLoopback(callbackUrl)
  const isOwnPort = port === listeningPort
  const homeUrl = homeUrlOf(callbackUrl)
  yield ok`Register exactly ${callbackUrl} with the provider. Users open ${homeUrl}.`

  if (url.href !== callbackUrl)
    yield warning`Browsers write the callback URL as ${url.href}, and the provider compares callback URLs character by character. Next: Set and register the URL in that spelling.`
  const spoken = `The callback URL says https for port ${port}, but on this port the server itself speaks plain http.`
  if (isHttps && isOwnPort && isLocal)
    yield failed`${spoken} Next: Use http://${url.host}${url.pathname}, or a proxy that terminates TLS on a different port.`
  else if (isHttps && isOwnPort)
    yield warning`${spoken} Next: Remove the port, unless a proxy on another machine uses the same port.`
  else if (isHttps && isLocal)
    yield warning`https on ${url.hostname} works only with a proxy on this machine that terminates TLS, because this server speaks plain http. Next: Without a proxy, use http://${url.hostname}:${listeningPort || 8080}${url.pathname}.`
  else if (!isHttps && !isOwnPort)
    yield warning`The callback URL leads to port ${port}, but the server listens on ${listeningPort === 0 ? 'any free port' : `port ${listeningPort}`}. Next: Use the same port (--port ${port}), unless a proxy forwards the requests.`

  // The host name in the URL that the server prints when it starts.
  const printed = localNameOf(host)
  if (!isHttps && isLocal && url.hostname !== printed)
    yield warning`The callback URL says ${url.hostname}, but the server prints the name ${printed}. A login that begins at ${printed} ends at ${url.hostname}, because cookies belong to one host name. Next: Open only ${homeUrl}, or use the same name in the setting "host" and in the callback URL.`
  const basePath = basePathOf(callbackUrl)
  const removal = `The server serves ${callbackPath}, so a proxy must remove ${basePath} from the path of every request.`
  if (basePath !== '' && !isHttps && isLocal && isOwnPort)
    yield warning`${removal} Next: If there is no proxy, remove ${basePath} from the callback URL.`
  else if (basePath !== '') yield ok`${removal}`
}

const PROBE_MS = 2000

/** Checks that the ports of the server are free, by listening on each of them for a short time. */
export async function checkPort(config: Config): Promise<Finding[]> {
  const found = await tryToListen(config, 'server')
  const addresses = [
    ['forwardAuth', config.forwardAuth.address],
    ['metrics', config.metrics.address]
  ] as const
  const others = addresses.map(([listener, address]) => address && tryToListen(address, listener))
  // If this server is already running, it also uses the ports of its other listeners, so the findings for these ports
  // are only warnings.
  const isRunning = found.status === 'warning'
  const ofOthers = (await Promise.all(others)).filter(finding => finding !== undefined)
  return [found, ...ofOthers.map(finding => (isRunning ? { ...finding, status: 'warning' as const } : finding))]
}

async function tryToListen({ port, host }: Pick<Config, 'port' | 'host'>, listener: Listener): Promise<Finding> {
  const { portOption, hostOption } = listeners[listener]
  const server = createServer()
  try {
    await listen(server, { port, host })
    await closeServer(server)
    return port === 0 ? ok`With port 0, the system chooses a free port.` : ok`Port ${port} is free.`
  } catch (error) {
    if (errorCode(error) === 'EADDRINUSE' && (await isThisServer(port, host)))
      return warning`A platform-auth-server is already running on port ${port}. Next: Stop it before you start another, or choose a different port with ${portOption}.`
    const [problem, advice] = explainListenError(error, listener)
    if (advice !== undefined) return failed`${problem} Next: ${advice}`
    return failed`${problem}. Next: Choose a different port with ${portOption}, or a different host with ${hostOption}.`
  }
}

function isThisServer(port: number, host: string | undefined): Promise<boolean> {
  return askLoopback(`${localUrlOf({ port, host })}/healthz`, PROBE_MS).then(
    ({ status, body }) => status === 200 && /^\{"status":"ok"[,}]/.test(body),
    () => false
  )
}
