import { maskUrl } from './urls.js'
import { REJECTED, type ValueType } from './value-type.js'

/**
 * The parsed setting `redis.url`, which has the form `redis[s]://[user[:password]@]host[:port][,host[:port]…][/database][?…]`. If
 * there are several hosts, they are the nodes of a cluster. With `?sentinel=NAME`, the hosts are the sentinels that watch the
 * master NAME. With `?cluster`, a single host is one node of a cluster. The server has a custom parser, because `URL` allows only
 * one host, and the Redis client would accept any parameter as one of its options.
 */
export interface RedisUrl {
  /** The URL as it was written. It may contain passwords. */
  readonly text: string
  readonly kind: 'single' | 'sentinel' | 'cluster'
  readonly hosts: readonly { readonly host: string; readonly port: number }[]
  /** The name under which the sentinels know the master. */
  readonly masterName: string | undefined
  readonly sentinelUsername: string | undefined
  readonly sentinelPassword: string | undefined
  readonly tls: boolean
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
}

const REDIS_PORT = 6379
const SENTINEL_PORT = 26379

// The groups: scheme | user and password | hosts | database | parameters.
const PARTS = /^(rediss?):\/\/(?:([^/?#]*)@)?([^/?#@]+)(?:\/(\d{1,5})?)?(?:\?([^#]*))?$/i
const HOST = /^(?:\[([0-9a-f:.%]+)\]|([\w.-]+))(?::(\d{1,5}))?$/i
const PARAMETERS = new Set(['cluster', 'sentinel', 'sentinelUsername', 'sentinelPassword'])

/** The type of the setting `redis.url`. */
export const redisUrl: ValueType<RedisUrl, string> = {
  allowed:
    'a URL such as redis://host:6379/0 (rediss:// for TLS, host,host for a cluster, host,host?sentinel=NAME for sentinels)',
  json: { type: 'string', pattern: '^rediss?://\\S+$' },
  parse(written) {
    if (typeof written !== 'string') return REJECTED
    const value = /^rediss?:\/\/\S+$/.test(written) ? parseRedisUrl(written) : undefined
    return value ? { value } : { reason: whyRefused(written) }
  },
  write: ({ text }) => text,
  mask: maskUrl,
  // The name of a parameter may be percent-encoded.
  containsSecret: url => /[@%]|password/i.test(url)
}

/** Parses a Redis URL. Returns undefined if the URL is malformed. */
export function parseRedisUrl(text: string): RedisUrl | undefined {
  const [, scheme = '', credentials = '', hostList = '', database = '0', query] = PARTS.exec(text) ?? []
  const parameters = new URLSearchParams(query)
  const masterName = parameters.get('sentinel') ?? undefined
  const hosts = hostList.split(',').map(host => parseHost(host, masterName === undefined ? REDIS_PORT : SENTINEL_PORT))
  const isCluster = parameters.has('cluster') || (hosts.length > 1 && masterName === undefined)
  const isRejected =
    scheme === '' ||
    masterName === '' ||
    (isCluster && (masterName !== undefined || database !== '0')) ||
    [...parameters.keys()].some(name => !PARAMETERS.has(name))
  if (isRejected || !hosts.every(host => host !== undefined)) return undefined

  const [username, ...password] = credentials.split(':').map(decode)
  return {
    text,
    kind: isCluster ? 'cluster' : masterName === undefined ? 'single' : 'sentinel',
    hosts,
    masterName,
    sentinelUsername: parameters.get('sentinelUsername') ?? undefined,
    sentinelPassword: parameters.get('sentinelPassword') ?? undefined,
    tls: scheme.toLowerCase() === 'rediss',
    username: username || undefined,
    password: password.join(':') || undefined,
    database: Number(database)
  }
}

/** Returns the reason why a URL was refused. The reason contains no part of the URL that may belong to a password. */
function whyRefused(url: string): string {
  if (/^[a-z+]*unix:/i.test(url))
    return 'it is the URL of a Unix socket, which is not supported (use redis://localhost)'
  const [, scheme, hosts = '', rest = ''] = /^(rediss?):\/\/(?:[^/?#]*@)?([^/?#]*)(.*)$/is.exec(url) ?? []
  if (scheme === undefined) return 'it does not begin with redis:// or rediss://'
  // In a Redis URL, an @ can only follow the user and the password. If an @ comes after the first /, ? or # that follows the
  // scheme, this /, ? or # is probably part of the password.
  if (rest.includes('@')) return 'its user or password contains a /, ? or #, which must be written as %2F, %3F or %23'
  const query = /\?(.*)$/s.exec(rest)?.[1]
  const unknown = [...new URLSearchParams(query).keys()].filter(name => !PARAMETERS.has(name))
  if (unknown.length > 0 && hosts.split(',').every(host => HOST.test(host))) {
    // In `sentinelPassword=Ab1&Rest`, the unknown name is a part of the password.
    return `it has an unknown parameter (known parameters: ${[...PARAMETERS].join(', ')}); in a password, & must be written as %26`
  }
  return 'it is not a Redis URL'
}

function parseHost(written: string, defaultPort: number): { host: string; port: number } | undefined {
  const [, address, name, port = String(defaultPort)] = HOST.exec(written) ?? []
  const host = address ?? name
  return host !== undefined && Number(port) > 0 && Number(port) < 65_536 ? { host, port: Number(port) } : undefined
}

// A user name or password with a lone % was not percent-encoded, so it is used unchanged.
function decode(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    return encoded
  }
}
