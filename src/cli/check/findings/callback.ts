import { basePathOf, callbackPath, homeUrlOf, isLoopback, localNameOf } from '../../../config/addresses.js'
import type { Config } from '../../../config/settings.js'
import { type Finding, findingsFor } from '../finding.js'

const { ok, warning, failed } = findingsFor('callback')

/** Reports the callback URL to register, and every difference between this URL and the address of the server. */
export function callback(config: Config): Finding[] {
  const { callbackUrl } = config.platform
  const place = placeOf(config)
  return [
    ok(`Register exactly ${callbackUrl} at the provider. People open ${homeUrlOf(callbackUrl)}.`),
    ...rules.flatMap(rule => rule(place) ?? [])
  ]
}

interface Place {
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

type Rule = (place: Place) => Finding | undefined

function placeOf({ port, host, platform: { callbackUrl } }: Config): Place {
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

const rules: readonly Rule[] = [spelling, schemeOfThisServer, schemeOnLocalhost, portOfThisServer, hostName, basePath]

function spelling({ url, callbackUrl }: Place): Finding | undefined {
  if (url.href === callbackUrl) return undefined
  const message = `Browsers write the callback URL as ${url.href}, and the provider compares it character by character.`
  return warning(message, 'Set and register the URL in that spelling.')
}

function schemeOfThisServer({ isHttps, isLocal, port, listeningPort, url }: Place): Finding | undefined {
  if (!isHttps || port !== listeningPort) return undefined
  const message = `The callback URL says https for port ${port}, but on this port the server itself speaks plain http.`
  if (!isLocal) return warning(message, 'Leave out the port, unless a proxy on another machine uses the same port.')
  return failed(message, `Use http://${url.host}${url.pathname}, or a proxy that terminates TLS on another port.`)
}

function schemeOnLocalhost({ isHttps, isLocal, port, listeningPort, url }: Place): Finding | undefined {
  if (!isHttps || !isLocal || port === listeningPort) return undefined
  return warning(
    `https on ${url.hostname} works only with a proxy on this machine that terminates TLS, because this server speaks plain http.`,
    `Without a proxy, use http://${url.hostname}:${listeningPort || 8080}${url.pathname}.`
  )
}

function portOfThisServer({ isHttps, port, listeningPort }: Place): Finding | undefined {
  if (isHttps || port === listeningPort) return undefined
  const where = listeningPort === 0 ? 'any free port' : `port ${listeningPort}`
  return warning(
    `The callback URL leads to port ${port}, but the server listens on ${where}.`,
    `Use the same port (--port ${port}), unless a proxy forwards the requests.`
  )
}

/** Cookies belong to one host name, so a login must end under the host name under which it began. */
function hostName({ isHttps, isLocal, url, listeningHost, callbackUrl }: Place): Finding | undefined {
  if (isHttps || !isLocal || url.hostname === listeningHost) return undefined
  return warning(
    `The callback URL says ${url.hostname}, but the server prints ${listeningHost} as its own name. A login that begins at ${listeningHost} fails, because cookies belong to one host name.`,
    `Open only ${homeUrlOf(callbackUrl)}, or use the same name in host and in the callback URL.`
  )
}

function basePath({ isHttps, isLocal, port, listeningPort, callbackUrl }: Place): Finding | undefined {
  const path = basePathOf(callbackUrl)
  if (path === '') return undefined
  const message = `The server answers ${callbackPath}, so a proxy must remove ${path} from the path of every request.`
  if (isHttps || !isLocal || port !== listeningPort) return ok(message)
  return warning(message, `Without a proxy, remove ${path} from the callback URL.`)
}
