import { createServer } from 'node:http'
import type { Config } from '../../config/settings.js'
import { basePathOf, callbackPath, homeUrlOf, isLoopback, localNameOf, localUrlOf } from '../../config/urls.js'
import { errorCode } from '../../support/error-code.js'
import { closeServer, listen } from '../../support/listener.js'
import { type Listener, listenError, listeners } from '../errors.js'
import { type Finding, failed, ok, warning } from './findings.js'

/** Reports the callback URL to register, and every way in which this URL does not fit the address of the server. */
export function checkCallback(config: Config): Finding[] {
  const { callbackUrl } = config.platform
  const place = placeOf(config)
  return [
    ok(`Register exactly ${callbackUrl} at the provider. Users open ${homeUrlOf(callbackUrl)}.`),
    ...rules.flatMap(rule => rule(place) ?? [])
  ]
}

interface CallbackAndPort {
  readonly callbackUrl: string
  readonly url: URL
  readonly isHttps: boolean
  /** True if the host of the callback URL is this machine. There is then probably no proxy in front of the server. */
  readonly isLocal: boolean
  /** The port of the callback URL. */
  readonly port: number
  readonly listeningPort: number
  /** The host name in the URL that the server prints when it starts. */
  readonly listeningHost: string
}

type CallbackRule = (place: CallbackAndPort) => Finding | undefined

function placeOf({ port, host, platform: { callbackUrl } }: Config): CallbackAndPort {
  const url = new URL(callbackUrl)
  const isHttps = url.protocol === 'https:'
  return {
    callbackUrl,
    url,
    isHttps,
    isLocal: isLoopback(callbackUrl),
    port: Number(url.port) || (isHttps ? 443 : 80),
    listeningPort: port,
    listeningHost: localNameOf(host)
  }
}

const rules: readonly CallbackRule[] = [
  spelling,
  schemeOfThisServer,
  schemeOnLocalhost,
  portOfThisServer,
  hostName,
  basePath
]

function spelling({ url, callbackUrl }: CallbackAndPort): Finding | undefined {
  if (url.href === callbackUrl) return undefined
  const message = `Browsers write the callback URL as ${url.href}, and the provider compares it character by character.`
  return warning(message, 'Set and register the URL in that spelling.')
}

function schemeOfThisServer({ isHttps, isLocal, port, listeningPort, url }: CallbackAndPort): Finding | undefined {
  if (!isHttps || port !== listeningPort) return undefined
  const message = `The callback URL says https for port ${port}, but on this port the server itself speaks plain http.`
  if (!isLocal) return warning(message, 'Remove the port, unless a proxy on another machine uses the same port.')
  return failed(message, `Use http://${url.host}${url.pathname}, or a proxy that terminates TLS on another port.`)
}

function schemeOnLocalhost({ isHttps, isLocal, port, listeningPort, url }: CallbackAndPort): Finding | undefined {
  if (!isHttps || !isLocal || port === listeningPort) return undefined
  return warning(
    `https on ${url.hostname} works only with a proxy on this machine that terminates TLS, because this server speaks plain http.`,
    `Without a proxy, use http://${url.hostname}:${listeningPort || 8080}${url.pathname}.`
  )
}

function portOfThisServer({ isHttps, port, listeningPort }: CallbackAndPort): Finding | undefined {
  if (isHttps || port === listeningPort) return undefined
  const where = listeningPort === 0 ? 'any free port' : `port ${listeningPort}`
  return warning(
    `The callback URL leads to port ${port}, but the server listens on ${where}.`,
    `Use the same port (--port ${port}), unless a proxy forwards the requests.`
  )
}

/** Cookies belong to one host name, so a login must end under the host name under which it began. */
function hostName({ isHttps, isLocal, url, listeningHost, callbackUrl }: CallbackAndPort): Finding | undefined {
  if (isHttps || !isLocal || url.hostname === listeningHost) return undefined
  return warning(
    `The callback URL says ${url.hostname}, but the server prints the name ${listeningHost}. A login that begins at ${listeningHost} fails, because cookies belong to one host name.`,
    `Open only ${homeUrlOf(callbackUrl)}, or use the same name in host and in the callback URL.`
  )
}

function basePath({ isHttps, isLocal, port, listeningPort, callbackUrl }: CallbackAndPort): Finding | undefined {
  const path = basePathOf(callbackUrl)
  if (path === '') return undefined
  const message = `The server serves ${callbackPath}, so a proxy must remove ${path} from the path of every request.`
  if (isHttps || !isLocal || port !== listeningPort) return ok(message)
  return warning(message, `Without a proxy, remove ${path} from the callback URL.`)
}

const TIMEOUT_MS = 2000
const BODY_LIMIT = 1000

/** Checks that the ports of the server are free, by listening on each of them for a short time. */
export async function checkPort(config: Config): Promise<Finding[]> {
  const found = await tryToListen({ port: config.port, host: config.host, listener: 'server' })
  const others: Finding[] = []
  for (const listener of ['forwardAuth', 'metrics'] as const) {
    const { port, host } = config[listener]
    if (port !== undefined) others.push(...(await tryToListen({ port, host, listener })))
  }
  // If this server is already running, it also uses the ports of its other listeners, so the findings for these ports
  // are only warnings.
  const isRunning = found.some(({ status }) => status === 'warning')
  return [...found, ...others.map(finding => (isRunning ? { ...finding, status: 'warning' as const } : finding))]
}

interface Address {
  readonly port: number
  readonly host: string | undefined
  readonly listener: Listener
}

async function tryToListen({ port, host, listener }: Address): Promise<Finding[]> {
  const { portOption, hostOption } = listeners[listener]
  try {
    await listenOnce(port, host)
    return [ok(port === 0 ? `With ${portOption} 0, the system chooses a free port.` : `Port ${port} is free.`)]
  } catch (error) {
    if (errorCode(error) === 'EADDRINUSE' && (await isThisServer(port, host))) {
      const message = `A platform-auth-server is already running on port ${port}.`
      return [warning(message, `Stop it before you start another, or choose another port with ${portOption}.`)]
    }
    const [message = '', next = ''] = listenError(error, listener).message.split('. ')
    const advice = next === '' ? `Choose another port with ${portOption}, or another host with ${hostOption}.` : next
    return [failed(`${message}.`, advice)]
  }
}

async function listenOnce(port: number, host: string | undefined): Promise<void> {
  const server = createServer()
  await listen(server, { port, host })
  await closeServer(server)
}

async function isThisServer(port: number, host: string | undefined): Promise<boolean> {
  try {
    const url = `${localUrlOf({ port, host })}/healthz`
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) })
    if (Number(response.headers.get('content-length') ?? BODY_LIMIT) >= BODY_LIMIT) {
      await response.body?.cancel()
      return false
    }
    const { status } = (await response.json()) as { status?: unknown }
    return response.status === 200 && status === 'ok'
  } catch {
    return false
  }
}
