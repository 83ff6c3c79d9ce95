import { basePathOf, callbackPath, homeUrlOf, isLoopback, localNameOf } from '../../config/addresses.js'
import type { Config } from '../../config/settings.js'
import { about, type Finding } from './finding.js'

const { ok, warning, failed } = about('callback')

/** What to register, and what in it does not go together with where the server listens. */
export function callback(config: Config): Finding[] {
  const { callbackUrl } = config.platform
  const place = placeOf(config)
  return [
    ok(`Register exactly ${callbackUrl} at the provider; people open ${homeUrlOf(callbackUrl)}.`),
    ...rules.flatMap(rule => rule(place) ?? [])
  ]
}

interface Place {
  readonly callbackUrl: string
  readonly url: URL
  readonly isHttps: boolean
  /** The browser is on the machine of the server, so most likely there is no proxy between them. */
  readonly isLocal: boolean
  /** To which the callback URL leads. */
  readonly port: number
  readonly listeningPort: number
  /** By which the server would call itself. */
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
  const message = `Browsers write the callback URL as ${url.href}, and the provider compares letter by letter.`
  return warning(message, 'Set and register it in that spelling.')
}

function schemeOfThisServer({ isHttps, isLocal, port, listeningPort, url }: Place): Finding | undefined {
  if (!isHttps || port !== listeningPort) return undefined
  const message = `The callback URL says https for port ${port}, where this server itself speaks plain http.`
  if (!isLocal) return warning(message, 'Leave the port out, unless a proxy on another machine has the same one.')
  return failed(message, `Use http://${url.host}${url.pathname}, or a proxy that ends TLS on another port.`)
}

function schemeOnLocalhost({ isHttps, isLocal, port, listeningPort, url }: Place): Finding | undefined {
  if (!isHttps || !isLocal || port === listeningPort) return undefined
  return warning(
    `https on ${url.hostname} works only with a proxy on this machine that ends TLS: this server speaks plain http.`,
    `Without one use http://${url.hostname}:${listeningPort || 8080}${url.pathname}.`
  )
}

function portOfThisServer({ isHttps, port, listeningPort }: Place): Finding | undefined {
  if (isHttps || port === listeningPort) return undefined
  const where = listeningPort === 0 ? 'any free port' : `port ${listeningPort}`
  return warning(
    `The callback URL leads to port ${port}, but the server listens on ${where}.`,
    `Make them the same (--port ${port}), unless a proxy connects them.`
  )
}

/** Cookies belong to one host name, so a login ends under the name under which it began, or not at all. */
function hostName({ isHttps, isLocal, url, listeningHost, callbackUrl }: Place): Finding | undefined {
  if (isHttps || !isLocal || url.hostname === listeningHost) return undefined
  return warning(
    `The callback URL says ${url.hostname}, but the server calls itself ${listeningHost}: a login begun there does not end.`,
    `Open ${homeUrlOf(callbackUrl)} and nothing else, or make host and callback URL the same.`
  )
}

function basePath({ isHttps, isLocal, port, listeningPort, callbackUrl }: Place): Finding | undefined {
  const path = basePathOf(callbackUrl)
  if (path === '') return undefined
  const message = `The server answers ${callbackPath}; a proxy must take ${path} off the path of every request.`
  if (isHttps || !isLocal || port !== listeningPort) return ok(message)
  return warning(message, `Without a proxy take ${path} out of the callback URL.`)
}
