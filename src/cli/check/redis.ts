import { connect } from 'node:tls'
import type { RedisUrl } from '../../config/redis-url.js'
import type { Config } from '../../config/settings.js'
import { databaseAdvice } from '../../store/index.js'
import { tlsOptions } from '../../store/redis-client.js'
import { errorCode } from '../../support/error-code.js'
import { explainConnectionError, type Finding, failed, ok, warning } from './findings.js'
import { type RedisCondition, type RedisProblem, redisConditions, testRights } from './redis-inspection.js'

const TIMEOUT_SECONDS = 2

/** Runs the commands that replicas use, then reads the memory and persistence settings of Redis. */
export async function checkRedis(config: Config): Promise<Finding[]> {
  const { redisUrl } = config
  if (redisUrl === undefined) {
    if (config.platform.backChannelLogout) return [forgetsLogouts]
    return [ok('No Redis is configured. One process needs none, but several replicas need redisUrl.')]
  }
  const tested = await testRights(redisUrl, config, TIMEOUT_SECONDS * 1000)
  if ('reason' in tested) {
    const code = await certificateProblem(tested, config)
    return [failed(...explain(code === undefined ? tested : { reason: code }, redisUrl))]
  }
  const { needed, optional } = tested
  if (needed.length > 0) {
    const message = `The user of redisUrl lacks rights that replicas need (NOPERM): ${shownRights(needed)}.`
    return [failed(message, addRights(needed))]
  }
  // The commands above have worked. If the state of Redis cannot be read now, the check only warns that the state is
  // unknown.
  const conditions = await redisConditions(redisUrl, config, TIMEOUT_SECONDS * 1000).catch(() => [{}])
  const unnamed = 'Redis refuses CLIENT SETNAME, so CLIENT LIST does not show which connections belong to this server.'
  return [
    ok('Redis responds and accepts the commands that replicas need.'),
    ...(optional.length > 0 ? [warning(unnamed, addRights(optional))] : []),
    ...redisFindings(conditions, config.session.store)
  ]
}

const forgetsLogouts = warning(
  'platform.backChannelLogout is on, but no Redis is configured. When the server restarts, it forgets logouts, so copies of old cookies work again. It also forgets which sessions a user has, so a logout token may end none of them.',
  'Set redisUrl.'
)

/** Returns the TLS error that may be the reason why the connection was closed. */
async function certificateProblem({ reason }: RedisProblem, config: Config): Promise<string | undefined> {
  const wasClosed = ['connection lost', 'ECONNRESET', 'EPIPE'].includes(reason)
  if (!config.redisUrl?.tls || !wasClosed) return undefined
  return tlsProblem(config.redisUrl, config, TIMEOUT_SECONDS * 1000)
}

function addRights(rights: readonly string[]): string {
  return `Add ${rights.join(' ')} to this user. docs/redis-and-replicas.md has a complete ACL line.`
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

function explain(problem: RedisProblem, address: RedisUrl): readonly [message: string, next: string] {
  const { reason, isAboutDatabase } = problem
  if (isAboutDatabase && reason !== 'NOAUTH') {
    const message = `Redis refuses to select database ${address.database} of redisUrl (${reason}).`
    return [message, databaseAdvice(reason)]
  }
  return rejections[reason] ?? unreachable(reason, address)
}

const credentialsAdvice = 'Compare user and password in redisUrl with those of Redis.'

const rejections: Readonly<Record<string, readonly [message: string, next: string]>> = {
  NOAUTH: ['Redis requires a password (NOAUTH).', credentialsAdvice],
  WRONGPASS: ['Redis rejects the user or the password (WRONGPASS).', credentialsAdvice],
  READONLY: ['This Redis is a read-only replica (READONLY).', 'Set redisUrl to the master, or to the sentinels.'],
  OOM: ['Redis is full (OOM).', 'Raise maxmemory. The data of platform-auth-server is small and expires by itself.'],
  MISCONF: [
    'Redis accepts no writes, because it could not save its data to disk (MISCONF).',
    'Look for the reason in the log of Redis, for example a full disk, or a folder to which Redis cannot write.'
  ],
  NOREPLICAS: [
    'Redis accepts no writes, because too few replicas are connected to it (NOREPLICAS).',
    'Start the replicas of Redis, or lower its setting min-replicas-to-write.'
  ],
  MOVED: ['This Redis is a node of a cluster (MOVED).', 'Add ?cluster to redisUrl.'],
  ERR: [
    'Redis rejects a command as invalid (ERR).',
    'Check if this Redis is a cluster, and that its version is 7 or later.'
  ],
  LOADING: ['Redis is still loading its data (LOADING).', 'Check again in a moment.']
}

function unreachable(reason: string, { hosts, tls, masterName }: RedisUrl): readonly [message: string, next: string] {
  const host = hosts.map(({ host, port }) => `${host}:${port}`).join(', ')
  if (/^[A-Z]+$/.test(reason) && !reason.startsWith('E')) {
    return [`Redis at ${host} rejects a command (${reason}).`, 'Look for this code in the documentation of Redis.']
  }
  if (reason === 'connection lost' && masterName !== undefined) {
    const message = `The sentinels at ${host} cannot be reached, or do not know a master named "${masterName}".`
    return [message, 'Check their addresses and the name after sentinel= in redisUrl.']
  }
  if (reason === 'connection lost' || reason === 'ECONNRESET') {
    const message = `Redis cannot be reached, because connections to ${host} are closed immediately.`
    return [
      message,
      'Check hosts and ports in redisUrl. If these ports use TLS, redisUrl must begin with rediss://, otherwise with redis://.'
    ]
  }
  const code = reason === 'timeout' ? 'ETIMEDOUT' : reason
  const refusal = clientCertificates.find(([alert]) => alert.test(code))
  if (refusal) return [`Redis at ${host} ${refusal[1]} (${code}).`, refusal[2]]
  const { message, next } = explainConnectionError(code, { host, setting: 'redisUrl', timeoutSeconds: TIMEOUT_SECONDS })
  if (/CERT|^UNABLE_TO_/.test(code) && !/EXPIRED|NOT_YET|ALTNAME/.test(code)) {
    return [`Redis cannot be reached: ${message}`, 'Set redisTls.caFile to the file of the certificate that signed it.']
  }
  return [`Redis cannot be reached: ${message}`, code === 'ETIMEDOUT' ? timeoutAdvice(tls) : next]
}

// The TLS alerts with which Redis refuses the client certificate (RFC 8446 section 6.2). Before TLS 1.3, the alert for
// a missing certificate is handshake_failure.
const clientCertificates: readonly (readonly [code: RegExp, problem: string, next: string])[] = [
  [
    /ALERT_(CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE)/,
    'requires a client certificate',
    'Set redisTls.certFile to a certificate that Redis accepts, and redisTls.keyFile to its key.'
  ],
  [
    /ALERT_CERTIFICATE_EXPIRED/,
    'refuses the client certificate of redisTls.certFile, because it has expired',
    'Renew the certificate. If it is still valid, check the clock of the machine on which Redis runs.'
  ],
  [
    /ALERT_UNKNOWN_CA/,
    'refuses the client certificate of redisTls.certFile, because it does not know who signed it',
    'Use a certificate signed by an authority that is in the tls-ca-cert-file of Redis.'
  ],
  [
    /ALERT_(BAD_CERTIFICATE|CERTIFICATE_\w+|UNSUPPORTED_CERTIFICATE|DECRYPT_ERROR)/,
    'refuses the client certificate of redisTls.certFile',
    'Look for the reason in the log of Redis.'
  ]
]

// If a TLS client connects to a port without TLS, Redis does not respond to its handshake, so the check times out.
function timeoutAdvice(tls: boolean): string {
  const firewall = 'Check whether a firewall blocks the connection'
  return tls ? `${firewall}, and whether this port uses TLS, which rediss:// requires.` : `${firewall}.`
}

const MAX_USED_RATIO = 0.8

/**
 * Warns if Redis may evict data, is nearly full, or may lose data in a restart or a failover.
 * @param store the setting `session.store`
 */
export function redisFindings(conditions: readonly RedisCondition[], store: Config['session']['store']): Finding[] {
  const found = conditions
    .flatMap(condition => [
      eviction(condition, store),
      headroom(condition),
      persistence(condition, store),
      lostWrites(condition),
      unknown(condition)
    ])
    .filter(finding => finding !== undefined)
  if (found.length === 0) return [ok('Redis evicts nothing, has free memory, and keeps its data across a restart.')]
  // The nodes of a cluster often have the same findings, so each message is reported once.
  return [...new Map(found.map(finding => [finding.message, finding])).values()]
}

function eviction(
  { evictionPolicy: policy = 'noeviction' }: RedisCondition,
  store: Config['session']['store']
): Finding | undefined {
  if (policy === 'noeviction') return undefined
  const consequence =
    store === 'redis'
      ? 'If it evicts a session, the user is signed out.'
      : 'If it evicts the entry of a session, refreshes of this session wait, and old cookies of a logged-out session may work again.'
  return warning(
    `Redis evicts data when its memory is full (maxmemory-policy ${policy}). ${consequence}`,
    'Set maxmemory-policy to noeviction.'
  )
}

function headroom({ usedBytes = 0, maxBytes }: RedisCondition): Finding | undefined {
  if (maxBytes === 0) {
    return warning(
      'Redis has no memory limit (maxmemory 0), so no alert can warn before its memory is full.',
      'Set maxmemory to less than the memory of its machine or container, for instance to 256mb.'
    )
  }
  if (maxBytes === undefined || usedBytes <= MAX_USED_RATIO * maxBytes) return undefined
  const percent = Math.round((usedBytes / maxBytes) * 100)
  return warning(
    `Redis uses ${percent} % of its memory limit of ${mebibytes(maxBytes)} MiB. When it is full, requests that need a refresh get 503.`,
    'Raise maxmemory, or look for other data in this Redis.'
  )
}

function persistence(
  { persistence: kind, hasFailedToSave, hasReplicas }: RedisCondition,
  store: Config['session']['store']
): Finding | undefined {
  if (hasFailedToSave) {
    return warning(
      'Redis could not save its data to disk. It may reject all writes until saving succeeds.',
      'Look for the reason in the log of Redis, for example a full disk.'
    )
  }
  if (kind === undefined || kind === 'append-only file' || hasReplicas) return undefined
  const what = kind === 'none' ? 'Redis keeps nothing on disk' : 'Redis saves only snapshots'
  const loss =
    store === 'redis'
      ? 'A restart loses the sessions, so everyone is signed out (session.store is redis).'
      : 'A restart loses logouts that no running replica remembers, so old cookies work again. It also loses refreshed sessions that have not reached the browser.'
  return warning(`${what} and has no replica. ${loss}`, 'Set appendonly to yes.')
}

// After a failover, the old master accepts writes until the sentinels demote it. These writes are lost, unless the
// master needs a replica to accept them.
function lostWrites({ minReplicasToWrite }: RedisCondition): Finding | undefined {
  if (minReplicasToWrite !== 0) return undefined
  return warning(
    'Redis accepts writes without a replica (min-replicas-to-write 0). After a failover, the old master can accept writes that are then lost, such as logouts and refreshed sessions.',
    'Set min-replicas-to-write to 1 and min-replicas-max-lag to 10, on the master and on its replicas.'
  )
}

function unknown({
  evictionPolicy,
  usedBytes,
  maxBytes,
  persistence,
  hasReplicas
}: RedisCondition): Finding | undefined {
  const topics = [
    ...(evictionPolicy === undefined ? ['its eviction policy'] : []),
    ...(maxBytes === undefined || usedBytes === undefined ? ['how full it is'] : []),
    ...(persistence === undefined && !hasReplicas ? ['whether it keeps its data'] : [])
  ]
  if (topics.length === 0) return undefined
  return warning(
    `Redis does not report ${topics.join(', ')}.`,
    'Allow this user to call INFO and CONFIG GET, or make sure yourself that Redis has maxmemory-policy noeviction, enough maxmemory and appendonly yes.'
  )
}

function mebibytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024)
}

// With TLS 1.3, Redis refuses a client certificate only after the handshake (RFC 8446 section 4.4.2.4), so the check
// waits this long for an alert.
const LATE_ALERT_MS = 500

/**
 * Returns the code of the error with which TLS fails at the first host of `address`, or undefined if TLS works. The
 * Redis client does not report this code if TLS fails late, or fails at a sentinel. It then reports only that the
 * connection was closed.
 */
export function tlsProblem(
  { hosts }: RedisUrl,
  { redisTls }: Pick<Config, 'redisTls'>,
  timeoutMs: number
): Promise<string | undefined> {
  return new Promise(resolve => {
    const socket = connect({ ...hosts[0], ...tlsOptions(redisTls) })
    let timer = setTimeout(() => end(undefined), timeoutMs)
    function end(code: string | undefined) {
      clearTimeout(timer)
      socket.destroy()
      resolve(code)
    }
    // A connection that Redis closes can emit a second error, for example the alert after ECONNRESET.
    socket.on('error', error => end(errorCode(error)))
    socket.once('close', () => end(undefined))
    socket.once('secureConnect', () => {
      clearTimeout(timer)
      timer = setTimeout(() => end(undefined), Math.min(LATE_ALERT_MS, timeoutMs))
    })
  })
}
