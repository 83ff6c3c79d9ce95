import { createConnection } from 'node:net'
import { connect } from 'node:tls'
import type { RedisUrl } from '../../config/redis-url.js'
import type { Config } from '../../config/settings.js'
import { countProcesses, databaseAdvice } from '../../sessions/index.js'
import { tlsOptions } from '../../sessions/redis-client.js'
import {
  connectionError,
  type Explanation,
  explainConnectionError,
  type Finding,
  failed,
  ok,
  warning
} from './findings.js'
import { type RedisCondition, type RedisProblem, redisConditions, testRights } from './redis-inspection.js'

const REDIS_SECONDS = 2

/** Runs the commands that replicas use, then reads the memory and persistence settings of Redis. */
export async function checkRedis(config: Config): Promise<Finding[]> {
  const redisUrl = config.redis.url
  if (redisUrl === undefined) return withoutRedis(config)
  const tested = await testRights(redisUrl, config, REDIS_SECONDS * 1000)
  if ('reason' in tested) {
    const code = (await certificateProblem(tested, redisUrl, config)) ?? (await greeting(tested, redisUrl))
    return [failed(...explain(code === undefined ? tested : { reason: code }, redisUrl))]
  }
  const { needed, optional, isOpen } = tested
  if (needed.length > 0) {
    const message = `The user of redis.url lacks rights that replicas need (NOPERM): ${shownRights(needed)}.`
    return [failed(message, addRights(needed))]
  }
  // The commands above have worked. If the state of Redis cannot be read now, the check only warns that the state is
  // unknown.
  const conditions = await redisConditions(redisUrl, config, REDIS_SECONDS * 1000).catch(() => [{}])
  const unnamed = 'Redis refuses CLIENT SETNAME, so CLIENT LIST does not show which connections belong to this server.'
  return [
    ok('Redis responds and accepts the commands that replicas need.'),
    ...(optional.length > 0 ? [warning(unnamed, addRights(optional))] : []),
    ...(isOpen ? [openToAll] : []),
    ...redisFindings(conditions, config.session.store)
  ]
}

async function withoutRedis({ port, platform }: Config): Promise<Finding[]> {
  const processes = await countProcesses(port)
  if (processes > 1) {
    const message = `${processes} processes share port ${port}, but no Redis is configured. Two of them may use the same refresh token, and then the user is signed out.`
    return [warning(message, 'Set redis.url, or run one process.')]
  }
  const forgets = platform.backchannelLogout
    ? ' After a restart, the server no longer knows which sessions a user has, so a logout token may end none of them.'
    : ''
  return [ok(`No Redis is configured. One process needs none, but several replicas need redis.url.${forgets}`)]
}

// With TLS 1.3, Redis refuses a client certificate only after the handshake (RFC 8446 section 4.4.2.4), so the check
// waits this long for an alert.
const LATE_ALERT_MS = 500

/**
 * Returns the code of the TLS error that may be the reason why Redis closed the connection. The Redis client does not
 * report this code if TLS fails late, or fails at a sentinel. So this function connects again to the first host.
 */
async function certificateProblem(
  { reason }: RedisProblem,
  { hosts, tls }: RedisUrl,
  { redis }: Config
): Promise<string | undefined> {
  if (!tls || !['connection_lost', 'ECONNRESET', 'EPIPE'].includes(reason)) return undefined
  const socket = connect({ ...hosts[0], ...tlsOptions(redis) })
  const code = await connectionError(socket, 'secureConnect', REDIS_SECONDS * 1000, LATE_ALERT_MS)
  return code === 'ETIMEDOUT' ? undefined : code
}

/**
 * Returns the code of the error that Redis sends to a connection before it closes it, for example because it has no free
 * connection. The Redis client does not report this error, because it has sent no command yet.
 */
function greeting({ reason }: RedisProblem, { hosts: [host], tls }: RedisUrl): Promise<string | undefined> {
  if (tls || !host || !['connection_lost', 'ECONNRESET', 'EPIPE', 'timeout'].includes(reason))
    return Promise.resolve(undefined)
  return new Promise(resolve => {
    const socket = createConnection(host)
    const end = (code: string | undefined) => {
      socket.destroy()
      resolve(code)
    }
    socket.setTimeout(LATE_ALERT_MS, () => end(undefined))
    socket.once('error', () => end(undefined))
    socket.once('close', () => end(undefined))
    socket.once('data', data => {
      const text = data.toString('latin1')
      end(text.startsWith('-ERR max number of clients') ? 'MAXCLIENTS' : /^-([A-Z]+) /.exec(text)?.[1])
    })
  })
}

const openToAll = warning(
  'Redis needs no password, although redis.url has one. Everyone who can connect to Redis can end sessions.',
  'Set requirepass, or an ACL, in Redis.'
)

function addRights(rights: readonly string[]): string {
  return `Add ${rights.join(' ')} to this user. docs/run/redis.md has a complete ACL line.`
}

function shownRights(rights: readonly string[]): string {
  const namesWith = (sign: string) => rights.filter(right => right.startsWith(sign)).map(right => right.slice(1))
  const commands = namesWith('+').map(name => name.toUpperCase().replace('|', ' '))
  const kinds = { commands, keys: namesWith('~'), channels: namesWith('&') }
  return Object.entries(kinds)
    .filter(([, names]) => names.length > 0)
    .map(([kind, names]) => `${kind} ${names.join(', ')}`)
    .join('; ')
}

function explain({ reason, isAboutDatabase, command }: RedisProblem, redisUrl: RedisUrl): Explanation {
  if (reason === 'UNKNOWNCOMMAND') {
    const message = `Redis does not know the command ${command}. It may have been renamed or disabled (rename-command).`
    return [message, 'Give the command its name back, or use a different Redis.']
  }
  if (isAboutDatabase && reason !== 'NOAUTH') {
    const message = `Redis refuses to select database ${redisUrl.database} of redis.url (${reason}).`
    return [message, databaseAdvice(reason)]
  }
  return rejections[reason] ?? unreachable(reason, redisUrl)
}

const credentialsAdvice = 'Compare user and password in redis.url with those of Redis.'

const rejections: Readonly<Record<string, Explanation>> = {
  NOAUTH: ['Redis requires a password (NOAUTH).', credentialsAdvice],
  WRONGPASS: ['Redis rejects the user or the password (WRONGPASS).', credentialsAdvice],
  READONLY: ['This Redis is a read-only replica (READONLY).', 'Set redis.url to the master, or to the sentinels.'],
  OOM: [
    'Redis is full (OOM).',
    'Raise maxmemory, or look for other data in this Redis. The data of platform-auth-server is small and expires by itself.'
  ],
  MISCONF: [
    'Redis accepts no writes, because it could not save its data to disk (MISCONF).',
    'Look for the reason in the log of Redis, for example a full disk, or a folder to which Redis cannot write.'
  ],
  NOREPLICAS: [
    'Redis accepts no writes, because too few replicas are connected to it (NOREPLICAS).',
    'Start the replicas of Redis, or lower its setting min-replicas-to-write.'
  ],
  MOVED: ['This Redis is a node of a cluster (MOVED).', 'Add ?cluster to redis.url.'],
  ERR: [
    'Redis rejects a command as invalid (ERR).',
    'Check if this Redis is a cluster, and that its version is 7 or later.'
  ],
  MAXCLIENTS: [
    'Redis has no free connection (maxclients).',
    'Raise maxclients, or look for programs with many connections. Each process of this server needs two.'
  ],
  DENIED: [
    'Redis accepts only connections of its own machine (DENIED), because it has no password.',
    'Set requirepass in Redis, and the password in redis.url.'
  ],
  LOADING: ['Redis is still loading its data (LOADING).', 'Check again in a moment.']
}

function unreachable(reason: string, { hosts, tls, masterName }: RedisUrl): Explanation {
  const host = hosts.map(({ host, port }) => `${host}:${port}`).join(', ')
  if (/^[A-Z]+$/.test(reason) && !reason.startsWith('E'))
    return [`Redis at ${host} rejects a command (${reason}).`, 'Look for this code in the documentation of Redis.']
  if (reason === 'connection_lost' && masterName !== undefined) {
    const message = `The sentinels at ${host} cannot be reached, or do not know a master named "${masterName}".`
    return [message, 'Check their addresses and the name after sentinel= in redis.url.']
  }
  if (reason === 'connection_lost' || reason === 'ECONNRESET') {
    const message = `Redis cannot be reached, because connections to ${host} are closed immediately.`
    const schemes = 'If these ports use TLS, redis.url must begin with rediss://, otherwise with redis://.'
    return [message, `Check hosts and ports in redis.url. ${schemes}`]
  }
  const code = reason === 'timeout' ? 'ETIMEDOUT' : reason
  const refusal = clientCertificates.find(([alert]) => alert.test(code))
  if (refusal) return [`Redis at ${host} ${refusal[1]} (${code}).`, refusal[2]]
  const place = { host, setting: 'redis.url', timeoutSeconds: REDIS_SECONDS }
  const [message, next] = explainConnectionError(code, place)
  const isUnknownAuthority = /CERT|^UNABLE_TO_/.test(code) && !/EXPIRED|NOT_YET|ALTNAME/.test(code)
  const name = 'If this is the right Redis, set redis.serverName to a name that the certificate contains.'
  const trust = 'Set redis.caFile to the file of the certificate that signed it.'
  // If a TLS client connects to a port without TLS, Redis does not respond to its handshake, so the check times out.
  const firewall = 'Check whether a firewall blocks the connection'
  const blocked = tls ? `${firewall}, and whether this port uses TLS, which rediss:// requires.` : `${firewall}.`
  const advices = { ETIMEDOUT: blocked, ERR_TLS_CERT_ALTNAME_INVALID: name } as const
  const advice = advices[code as keyof typeof advices] ?? (isUnknownAuthority ? trust : next)
  return [`Redis cannot be reached: ${message}`, advice]
}

// The TLS alerts with which Redis refuses the client certificate (RFC 8446 section 6.2). Before TLS 1.3, the alert for
// a missing certificate is handshake_failure.
const clientCertificates: readonly (readonly [code: RegExp, problem: string, next: string])[] = [
  [
    /ALERT_(CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE)/,
    'requires a client certificate',
    'Set redis.certFile to a certificate that Redis accepts, and redis.keyFile to its key.'
  ],
  [
    /ALERT_CERTIFICATE_EXPIRED/,
    'refuses the client certificate of redis.certFile, because it has expired',
    'Renew the certificate. If it is still valid, check the clock of the machine on which Redis runs.'
  ],
  [
    /ALERT_UNKNOWN_CA/,
    'refuses the client certificate of redis.certFile, because it does not know who signed it',
    'Use a certificate signed by an authority that is in the tls-ca-cert-file of Redis.'
  ],
  [
    /ALERT_(BAD_CERTIFICATE|CERTIFICATE_\w+|UNSUPPORTED_CERTIFICATE|DECRYPT_ERROR)/,
    'refuses the client certificate of redis.certFile',
    'Look for the reason in the log of Redis.'
  ]
]

const MAX_USED_RATIO = 0.8

/** The setting `session.store`. */
type StoreSetting = Config['session']['store']

/** Warns if Redis may evict data, is nearly full, or may lose data in a restart or a failover. */
export function redisFindings(conditions: readonly RedisCondition[], store: StoreSetting): Finding[] {
  const checks = [eviction, headroom, persistence, lostWrites, unknown]
  const found = conditions.flatMap(condition => checks.flatMap(check => check(condition, store) ?? []))
  if (found.length === 0) return [ok('Redis evicts nothing, has free memory, and keeps its data across a restart.')]
  // The nodes of a cluster often have the same findings, so each message is reported once.
  return [...new Map(found.map(finding => [finding.message, finding])).values()]
}

function eviction({ evictionPolicy = 'noeviction' }: RedisCondition, store: StoreSetting): Finding | undefined {
  if (evictionPolicy === 'noeviction') return undefined
  const message = `Redis evicts data when its memory is full (maxmemory-policy ${evictionPolicy}).`
  const consequence =
    store === 'redis'
      ? 'If it evicts a session, the user is signed out.'
      : 'If it evicts the entry of a session, refreshes of this session wait, and old cookies of a logged-out session may work again.'
  return warning(`${message} ${consequence}`, 'Set maxmemory-policy to noeviction.')
}

function headroom({ usedBytes = 0, maxBytes }: RedisCondition): Finding | undefined {
  if (maxBytes === 0) {
    const message = 'Redis has no memory limit (maxmemory 0), so no alert can warn before its memory is full.'
    const next = 'Set maxmemory to less than the memory of its machine or container, for instance to 256mb.'
    return warning(message, next)
  }
  if (maxBytes === undefined || usedBytes <= MAX_USED_RATIO * maxBytes) return undefined
  const percent = Math.round((usedBytes / maxBytes) * 100)
  const mebibytes = Math.round(maxBytes / 1024 / 1024)
  const message = `Redis uses ${percent} % of its memory limit of ${mebibytes} MiB. When it is full, requests that need a refresh get 503.`
  return warning(message, 'Raise maxmemory, or look for other data in this Redis.')
}

function persistence(condition: RedisCondition, store: StoreSetting): Finding | undefined {
  if (condition.hasFailedToSave) {
    const message = 'Redis could not save its data to disk. It may reject all writes until saving succeeds.'
    return warning(message, 'Look for the reason in the log of Redis, for example a full disk.')
  }
  const { persistence: kind, hasReplicas } = condition
  if (kind === undefined || kind === 'append-only file' || hasReplicas) return undefined
  const what = kind === 'none' ? 'Redis keeps nothing on disk' : 'Redis saves only snapshots'
  const loss =
    store === 'redis'
      ? 'A restart loses the sessions, so everyone is signed out (session.store is redis).'
      : 'A restart loses logouts that no running replica remembers, so old cookies work again. It also loses refreshed sessions that have not reached the browser.'
  return warning(`${what} and has no replica. ${loss}`, 'Set appendonly to yes.')
}

// After a failover, the old master accepts writes until the sentinels demote it, and these writes are lost. With
// min-replicas-to-write, a master without a replica rejects writes instead.
function lostWrites({ minReplicasToWrite }: RedisCondition): Finding | undefined {
  if (minReplicasToWrite !== 0) return undefined
  const message =
    'Redis accepts writes without a replica (min-replicas-to-write 0). After a failover, the old master can accept writes that are then lost, such as logouts and refreshed sessions.'
  const next = 'Set min-replicas-to-write to 1 and min-replicas-max-lag to 10, on the master and on its replicas.'
  return warning(message, next)
}

function unknown(condition: RedisCondition): Finding | undefined {
  const { evictionPolicy, usedBytes, maxBytes, persistence, hasReplicas } = condition
  const topics = [
    evictionPolicy === undefined && 'its eviction policy',
    (maxBytes === undefined || usedBytes === undefined) && 'how full it is',
    persistence === undefined && !hasReplicas && 'whether it keeps its data'
  ].filter(Boolean)
  if (topics.length === 0) return undefined
  const message = `Redis does not report ${topics.join(', ')}.`
  const next =
    'Allow this user to call INFO and CONFIG GET, or make sure yourself that Redis has maxmemory-policy noeviction, enough maxmemory and appendonly yes.'
  return warning(message, next)
}
