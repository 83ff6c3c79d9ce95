import type { RedisAddress } from '../../config/redis-address.js'
import type { Config } from '../../config/settings.js'
import { explainConnectionError } from './errors.js'
import { type RedisCondition, redisConditions, redisProblem } from './redis-state.js'
import { type Finding, failed, ok, warning } from './report.js'

const TIMEOUT_SECONDS = 2

/** Runs the commands that replicas use, then reads the memory and persistence settings of Redis. */
export async function redis(config: Config): Promise<Finding[]> {
  const { redisUrl } = config
  if (redisUrl === undefined) {
    return [ok('redis', 'No Redis is configured. One process needs none, but several replicas need redisUrl.')]
  }
  const problem = await redisProblem(redisUrl, config, TIMEOUT_SECONDS * 1000)
  if (problem === undefined) {
    // Redis has answered, so if its state cannot be read, nothing is known about it.
    const conditions = await redisConditions(redisUrl, config, TIMEOUT_SECONDS * 1000).catch(() => [{}])
    return [
      ok('redis', 'Redis answers and accepts the commands that replicas need.'),
      ...redisFindings(conditions, config.session.store)
    ]
  }
  const [message, next] = rejections[problem] ?? unreachable(problem, redisUrl)
  return [failed('redis', message, next)]
}

const commandAdvice =
  'Give the user of redisUrl the commands EVAL, EVALSHA, PUBLISH, SUBSCRIBE and PING, and for scripts HMGET, HSET, HDEL, GET, SET, DEL, EXISTS, PEXPIRE and TIME. With platform.backChannelLogout, scripts also need ZADD, ZREM, ZRANGEBYSCORE and ZREMRANGEBYSCORE. docs/redis-and-replicas.md has a complete ACL line.'
const credentialsAdvice = 'Compare user and password in redisUrl with those of Redis.'

const rejections: Readonly<Record<string, readonly [message: string, next: string]>> = {
  NOAUTH: ['Redis requires a password (NOAUTH).', credentialsAdvice],
  WRONGPASS: ['Redis rejects the user or the password (WRONGPASS).', credentialsAdvice],
  NOPERM: ['Redis does not allow this user the commands that replicas need (NOPERM).', commandAdvice],
  READONLY: ['This Redis is a read-only replica (READONLY).', 'Set redisUrl to the master, or to the sentinels.'],
  OOM: ['Redis is full (OOM).', 'Raise maxmemory. The data of platform-auth-server is small and expires by itself.'],
  MISCONF: ['Redis accepts no writes because it cannot save its data (MISCONF).', 'Look for the reason in its log.'],
  MOVED: ['This Redis is a node of a cluster (MOVED).', 'Add ?cluster to redisUrl.'],
  ERR: [
    'Redis rejects a command as invalid (ERR).',
    'Check the database number in redisUrl. Check also if this Redis is a cluster, and that its version is 7 or later.'
  ],
  LOADING: ['Redis is still loading its data (LOADING).', 'Check again in a moment.']
}

function unreachable(
  reason: string,
  { hosts, tls, masterName }: RedisAddress
): readonly [message: string, next: string] {
  const host = hosts.map(({ host, port }) => `${host}:${port}`).join(', ')
  if (/^[A-Z]+$/.test(reason) && !reason.startsWith('E')) {
    return [`Redis at ${host} rejects a command (${reason}).`, 'Look for this code in the documentation of Redis.']
  }
  if (reason === 'connection lost' && masterName !== undefined) {
    const message = `The sentinels at ${host} cannot be reached, or do not know a master named "${masterName}".`
    return [message, 'Check their addresses and the name after sentinel= in redisUrl.']
  }
  if (reason === 'connection lost' || reason === 'ECONNRESET') {
    const message = `Redis cannot be reached, because connections to ${host} are closed at once.`
    return [
      message,
      'Check hosts and ports in redisUrl. If these ports use TLS, redisUrl must begin with rediss://, otherwise with redis://.'
    ]
  }
  const code = reason === 'timeout' ? 'ETIMEDOUT' : reason
  const { message, next } = explainConnectionError(code, { host, setting: 'redisUrl', timeoutSeconds: TIMEOUT_SECONDS })
  return [`Redis cannot be reached: ${message}`, code === 'ETIMEDOUT' ? timeoutAdvice(tls) : next]
}

// Redis does not answer a TLS handshake on a port without TLS, so the check times out.
function timeoutAdvice(tls: boolean): string {
  const firewall = 'Check whether a firewall blocks the connection'
  return tls ? `${firewall}, and whether this port uses TLS, which rediss:// requires.` : `${firewall}.`
}

const MAX_USED_RATIO = 0.8

/**
 * Warns if Redis may evict data, is nearly full, or loses its data at a restart.
 * @param store the setting `session.store`
 */
export function redisFindings(conditions: readonly RedisCondition[], store: Config['session']['store']): Finding[] {
  const found = conditions
    .flatMap(condition => [
      eviction(condition, store),
      headroom(condition),
      persistence(condition, store),
      unknown(condition)
    ])
    .filter(finding => finding !== undefined)
  if (found.length === 0)
    return [ok('redis', 'Redis evicts nothing, has free memory, and keeps its data at a restart.')]
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
      ? 'If it evicts a session, this person is signed out.'
      : 'If it evicts the entry of a session, refreshes of this session wait, and old cookies of a logged-out session may work again.'
  return warning(
    'redis',
    `Redis evicts data when its memory is full (maxmemory-policy ${policy}). ${consequence}`,
    'Set maxmemory-policy to noeviction.'
  )
}

function headroom({ usedBytes = 0, maxBytes }: RedisCondition): Finding | undefined {
  if (maxBytes === 0) {
    return warning(
      'redis',
      'Redis has no memory limit (maxmemory 0), so no alert can tell how full it is.',
      'Set maxmemory to less than the memory of its machine or container, for instance to 256mb.'
    )
  }
  if (maxBytes === undefined || usedBytes <= MAX_USED_RATIO * maxBytes) return undefined
  const percent = Math.round((usedBytes / maxBytes) * 100)
  return warning(
    'redis',
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
      'redis',
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
  return warning('redis', `${what} and has no replica. ${loss}`, 'Set appendonly to yes.')
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
    'redis',
    `Redis does not report ${topics.join(', ')}.`,
    'Allow INFO and CONFIG GET to this user, or make sure yourself that it has maxmemory-policy noeviction, enough maxmemory and appendonly yes.'
  )
}

function mebibytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024)
}
