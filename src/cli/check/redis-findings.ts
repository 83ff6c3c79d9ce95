import { createConnection } from 'node:net'
import { connect } from 'node:tls'
import type { Config } from '../../config/settings.js'
import type { RedisUrl } from '../../config/types/redis-url.js'
import { databaseAdvice } from '../../sessions/index.js'
import { tlsOptions } from '../../sessions/redis/redis-client.js'
import { type Finding, failed, ok, type Texts, textFor, warning } from './findings.js'
import { connectionError, explainConnectionError } from './network-errors.js'
import { inspectRedis, type RedisCondition, type RedisProblem } from './redis-inspection.js'

const REDIS_SECONDS = 2

/** Runs the commands that replicas use, then reads the memory and persistence settings of Redis. */
export async function checkRedis(config: Config): Promise<Finding[]> {
  const redisUrl = config.redis.url
  if (redisUrl === undefined) return [withoutRedis(config)]
  const state = await inspectRedis(redisUrl, config, REDIS_SECONDS * 1000)
  if ('reason' in state) {
    const reason = (await reasonOfClosing(state, redisUrl, config)) ?? state.reason
    return [failed`${explain({ ...state, reason }, redisUrl)}`]
  }
  const { refused, isOpen, conditions } = state
  if (refused.length > 0)
    return [
      failed`The user of redis.url lacks rights that replicas need (NOPERM): ${refused.join(' ')}. Next: Add them to this user. docs/run/redis.md has a complete ACL line.`
    ]
  return [
    ok`Redis responds and accepts the commands that replicas need.`,
    ...(isOpen ? [openToAll] : []),
    ...redisFindings(conditions, config.session.store)
  ]
}

const openToAll = warning`Redis needs no password, although redis.url has one. Everyone who can connect to Redis can end sessions. Next: Set requirepass, or an ACL, in Redis.`

function withoutRedis({ platform }: Config): Finding {
  const forgets = platform.backchannelLogout
    ? ' After a restart, the server no longer knows which sessions a user has, so a logout token may end none of them.'
    : ''
  return ok`No Redis is configured. One process needs none, but several replicas need redis.url.${forgets}`
}

// Redis sends some errors when the connection is open, before the first command: that it has no free connection, and with TLS
// 1.3 an alert about the client certificate (RFC 8446 section 4.4.2.4). The check waits this long for them.
const LATE_ERROR_MS = 500

/**
 * Returns the code of the error that may be the reason why Redis closed the connection. The Redis client does not report
 * it, because it has sent no command yet, or because it has connected to a sentinel. So this function connects again to
 * the first host.
 */
async function reasonOfClosing(
  { reason }: RedisProblem,
  { hosts: [host], tls }: RedisUrl,
  { redis }: Config
): Promise<string | undefined> {
  const unclear = ['connection_lost', 'ECONNRESET', 'EPIPE', ...(tls ? [] : ['timeout'])]
  if (!host || !unclear.includes(reason)) return undefined
  const socket = tls ? connect({ ...host, ...tlsOptions(redis) }) : createConnection(host)
  const opened = tls ? 'secureConnect' : 'connect'
  const code = await connectionError(socket, opened, REDIS_SECONDS * 1000, LATE_ERROR_MS)
  if (code === undefined || code === 'ETIMEDOUT') return undefined
  return tls || textFor(code, rejections) !== undefined ? code : undefined
}

const credentialsAdvice = 'Next: Compare user and password in redis.url with those of Redis.'

/** What Redis refuses, by the code of its reply. */
const rejections: Texts = {
  '^NOAUTH$': `Redis requires a password (NOAUTH). ${credentialsAdvice}`,
  '^WRONGPASS$': `Redis rejects the user or the password (WRONGPASS). ${credentialsAdvice}`,
  '^READONLY$': `This Redis is a read-only replica (READONLY). Next: Set redis.url to the master, or to the sentinels.`,
  '^OOM$': `Redis is full (OOM). Next: Raise maxmemory, or look for other data in this Redis. The data of platform-auth-server is small and expires by itself.`,
  '^MISCONF$': `Redis accepts no writes, because it could not save its data to disk (MISCONF). Next: Look for the reason in the log of Redis, for example a full disk, or a folder to which Redis cannot write.`,
  '^NOREPLICAS$': `Redis accepts no writes, because too few replicas are connected to it (NOREPLICAS). Next: Start the replicas of Redis, or lower its setting min-replicas-to-write.`,
  '^MOVED$': `This Redis is a node of a cluster (MOVED). Next: Add ?cluster to redis.url.`,
  '^ERR$': `Redis rejects a command as invalid (ERR). Next: Check if this Redis is a cluster, and that its version is 7 or later.`,
  '^(MAXCLIENTS|ERR max number of clients)$': `Redis has no free connection (maxclients). Next: Raise maxclients, or look for programs with many connections. Each process of this server needs two.`,
  '^DENIED$': `Redis accepts only connections of its own machine (DENIED), because it has no password. Next: Set requirepass in Redis, and the password in redis.url.`,
  '^LOADING$': `Redis is still loading its data (LOADING). Next: Check again in a moment.`
}

/**
 * What is special about Redis when a TLS connection fails. The alerts are those with which it refuses the client certificate (RFC
 * 8446 section 6.2). Before TLS 1.3, the alert for a missing certificate is handshake_failure.
 */
const certificates: Texts = {
  'ALERT_(CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE)': `requires a client certificate. Next: Set redis.certFile to a certificate that Redis accepts, and redis.keyFile to its key.`,
  ALERT_CERTIFICATE_EXPIRED: `refuses the client certificate of redis.certFile, because it has expired. Next: Renew the certificate. If it is still valid, check the clock of the machine on which Redis runs.`,
  ALERT_UNKNOWN_CA: `refuses the client certificate of redis.certFile, because it does not know who signed it. Next: Use a certificate signed by an authority that is in the tls-ca-cert-file of Redis.`,
  'ALERT_(BAD_CERTIFICATE|CERTIFICATE_\\w+|UNSUPPORTED_CERTIFICATE|DECRYPT_ERROR)': `refuses the client certificate of redis.certFile. Next: Look for the reason in the log of Redis.`
}

/** Advice that differs from that for other hosts. */
const redisAdvice: Texts = {
  ERR_TLS_CERT_ALTNAME_INVALID: `If this is the right Redis, set redis.serverName to a name that the certificate contains.`,
  '^(?!.*(EXPIRED|NOT_YET)).*CERT|^UNABLE_TO_': `Set redis.caFile to the file of the certificate that signed it.`
}

function explain({ reason, isAboutDatabase, command }: RedisProblem, { hosts, ...url }: RedisUrl): string {
  const host = hosts.map(({ host, port }) => `${host}:${port}`).join(', ')
  if (reason === 'UNKNOWNCOMMAND')
    return `Redis does not know the command ${command}. It may have been renamed or disabled (rename-command). Next: Give the command its name back, or use a different Redis.`
  if (isAboutDatabase && reason !== 'NOAUTH')
    return `Redis refuses to select database ${url.database} of redis.url (${reason}). Next: ${databaseAdvice(reason)}`
  const rejection = textFor(reason, rejections)
  if (rejection !== undefined) return rejection
  if (/^(?!E)[A-Z]+$/.test(reason))
    return `Redis at ${host} rejects a command (${reason}). Next: Look for this code in the documentation of Redis.`
  if (reason === 'connection_lost' && url.masterName !== undefined)
    return `The sentinels at ${host} cannot be reached, or do not know a master named "${url.masterName}". Next: Check their addresses and the name after sentinel= in redis.url.`
  if (reason === 'connection_lost' || reason === 'ECONNRESET')
    return `Redis cannot be reached, because connections to ${host} are closed immediately. Next: Check hosts and ports in redis.url. If these ports use TLS, redis.url must begin with rediss://, otherwise with redis://.`
  // If a TLS client connects to a port without TLS, Redis does not respond to its handshake, so the check times out.
  const orTls = url.tls ? ', and whether this port uses TLS, which rediss:// requires' : ''
  if (reason === 'timeout' || reason === 'ETIMEDOUT')
    return `Redis cannot be reached: ${host} did not respond within ${REDIS_SECONDS} s. Next: Check whether a firewall blocks the connection${orTls}.`
  const refusal = textFor(reason, certificates)
  if (refusal !== undefined) return `Redis at ${host} ${refusal.replace('. Next:', ` (${reason}). Next:`)}`
  const explained = explainConnectionError(reason, { host, setting: 'redis.url', timeoutSeconds: REDIS_SECONDS })
  const advice = textFor(reason, redisAdvice)
  return `Redis cannot be reached: ${advice === undefined ? explained : explained.replace(/Next: .*/, `Next: ${advice}`)}`
}

const MAX_USED_RATIO = 0.8

/** The setting `session.store`. */
type StoreSetting = Config['session']['store']

/** Warns if Redis may evict data, is nearly full, or may lose data in a restart or a failover. */
export function redisFindings(conditions: readonly RedisCondition[], store: StoreSetting): Finding[] {
  const found = conditions.flatMap(condition => [...findingsOf(condition, store)])
  if (found.length === 0) return [ok`Redis evicts nothing, has free memory, and keeps its data across a restart.`]
  // The nodes of a cluster often have the same findings, so each message is reported once.
  return [...new Map(found.map(finding => [finding.message, finding])).values()]
}

function* findingsOf(condition: RedisCondition, store: StoreSetting): Generator<Finding> {
  const { evictionPolicy, usedBytes, maxBytes, persistence, hasFailedToSave, hasReplicas } = condition
  const evicted =
    store === 'redis'
      ? 'If it evicts a session, the user is signed out.'
      : 'If it evicts the entry of a session, refreshes of this session wait, and old cookies of a logged-out session may work again.'
  if (evictionPolicy !== undefined && evictionPolicy !== 'noeviction')
    yield warning`Redis evicts data when its memory is full (maxmemory-policy ${evictionPolicy}). ${evicted} Next: Set maxmemory-policy to noeviction.`

  const used = maxBytes ? (usedBytes ?? 0) / maxBytes : 0
  if (maxBytes === 0)
    yield warning`Redis has no memory limit (maxmemory 0), so no alert can warn before its memory is full. Next: Set maxmemory to less than the memory of its machine or container, for instance to 256mb.`
  if (maxBytes && used > MAX_USED_RATIO)
    yield warning`Redis uses ${Math.round(used * 100)} % of its memory limit of ${Math.round(maxBytes / 1024 / 1024)} MiB. When it is full, requests that need a refresh get 503. Next: Raise maxmemory, or look for other data in this Redis.`

  const lost =
    store === 'redis'
      ? 'A restart loses the sessions, so everyone is signed out (session.store is redis).'
      : 'A restart loses logouts that no running replica remembers, so old cookies work again. It also loses refreshed sessions that have not reached the browser.'
  const kept = persistence === 'none' ? 'keeps nothing on disk' : 'saves only snapshots'
  if (hasFailedToSave)
    yield warning`Redis could not save its data to disk. It may reject all writes until saving succeeds. Next: Look for the reason in the log of Redis, for example a full disk.`
  else if (persistence !== undefined && persistence !== 'append-only file' && !hasReplicas)
    yield warning`Redis ${kept} and has no replica. ${lost} Next: Set appendonly to yes.`

  // After a failover, the old master accepts writes until the sentinels demote it, and these writes are lost. With
  // min-replicas-to-write, a master without a replica rejects writes instead.
  if (condition.minReplicasToWrite === 0)
    yield warning`Redis accepts writes without a replica (min-replicas-to-write 0). After a failover, the old master can accept writes that are then lost, such as logouts and refreshed sessions. Next: Set min-replicas-to-write to 1 and min-replicas-max-lag to 10, on the master and on its replicas.`

  const unknown = [
    evictionPolicy === undefined && 'its eviction policy',
    (maxBytes === undefined || usedBytes === undefined) && 'how full it is',
    persistence === undefined && !hasReplicas && 'whether it keeps its data'
  ].filter(Boolean)
  if (unknown.length > 0)
    yield warning`Redis does not report ${unknown.join(', ')}. Next: Allow this user to call INFO and CONFIG GET, or make sure yourself that Redis has maxmemory-policy noeviction, enough maxmemory and appendonly yes.`
}
