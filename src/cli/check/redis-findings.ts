import type { Config } from '../../config/settings.js'
import type { RedisUrl } from '../../config/types/redis-url.js'
import { databaseAdvice } from '../../sessions/index.js'
import { type Finding, failed, ok, type Texts, textFor, warning } from './findings.js'
import { explainConnectionError } from './network-errors.js'
import { inspectRedis, type RedisFacts, type RedisProblem } from './redis-inspection.js'

const REDIS_SECONDS = 2

/** Runs the commands that replicas use, then reads the settings of Redis that decide if data can be lost. */
export async function checkRedis(config: Config): Promise<Finding[]> {
  const { redis, platform } = config
  if (redis.url === undefined) {
    const forgets = platform.backchannelLogout
      ? ' After a restart, the server no longer knows which sessions a user has, so a logout token may end none of them.'
      : ''
    return [ok`No Redis is configured. One process needs none, but several replicas need redis.url.${forgets}`]
  }
  const state = await inspectRedis(redis.url, config, REDIS_SECONDS * 1000)
  if ('reason' in state) return [failed`${explain(state, redis.url)}`]
  const { refused, isOpen, servers } = state
  if (refused.length > 0)
    return [
      failed`The user of redis.url lacks rights that replicas need (NOPERM): ${refused.join(' ')}. Next: Add them to this user. docs/run/redis.md has a complete ACL line.`
    ]
  const open = warning`Redis needs no password, although redis.url has one. Everyone who can connect to Redis can end sessions. Next: Set requirepass, or an ACL, in Redis.`
  return [
    ok`Redis responds and accepts the commands that replicas need.`,
    ...(isOpen ? [open] : []),
    ...redisFindings(servers)
  ]
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
  '^MAXCLIENTS$': `Redis has no free connection (maxclients). Next: Raise maxclients, or look for programs with many connections. Each process of this server needs two.`,
  '^LOADING$': `Redis is still loading its data (LOADING). Next: Check again in a moment.`
}

/** Advice that differs from that for other hosts. */
const redisAdvice: Texts = {
  ERR_TLS_CERT_ALTNAME_INVALID: `If this is the right Redis, set redis.serverName to a name that the certificate contains.`,
  '^(?!.*(EXPIRED|NOT_YET)).*CERT|^UNABLE_TO_': `Set redis.caFile to the file of the certificate that signed it.`
}

function explain({ reason, command }: RedisProblem, { hosts, ...url }: RedisUrl): string {
  const host = hosts.map(({ host, port }) => `${host}:${port}`).join(', ')
  if (reason === 'UNKNOWNCOMMAND')
    return `Redis does not know the command ${command}. It may have been renamed or disabled (rename-command). Next: Give the command its name back, or use a different Redis.`
  if (command === 'SELECT' && reason !== 'NOAUTH')
    return `Redis refuses to select database ${url.database} of redis.url (${reason}). Next: ${databaseAdvice(reason)}`
  const rejection = textFor(reason, rejections)
  if (rejection !== undefined) return rejection
  if (/^(?!E)[A-Z]+$/.test(reason))
    return `Redis at ${host} rejects a command (${reason}). Next: Look for this code in the documentation of Redis.`
  if (reason === 'connection_lost' && url.masterName !== undefined)
    return `The sentinels at ${host} cannot be reached, or do not know a master named "${url.masterName}". Next: Check their addresses and the name after sentinel= in redis.url.`
  if (['connection_lost', 'ECONNRESET', 'EPIPE'].includes(reason) || reason.includes('ALERT'))
    return `Redis cannot be reached, because connections to ${host} are closed immediately. Next: ${closedAdvice(url)}`
  // If a TLS client connects to a port without TLS, Redis does not respond to its handshake, so the check times out.
  const orTls = url.tls ? ', and whether this port uses TLS, which rediss:// requires' : ''
  if (reason === 'timeout' || reason === 'ETIMEDOUT')
    return `Redis cannot be reached: ${host} did not respond within ${REDIS_SECONDS} s. Next: Check whether a firewall blocks the connection${orTls}.`
  const explained = explainConnectionError(reason, { host, setting: 'redis.url', timeoutSeconds: REDIS_SECONDS })
  const advice = textFor(reason, redisAdvice)
  return `Redis cannot be reached: ${advice === undefined ? explained : explained.replace(/Next: .*/, `Next: ${advice}`)}`
}

/** Redis does not tell why it closes a connection before the first command. */
function closedAdvice({ tls }: Pick<RedisUrl, 'tls'>): string {
  const reasons = tls
    ? 'These ports must use TLS. Other usual reasons are the certificate of Redis (redis.caFile, redis.serverName), the client certificate (redis.certFile), or no free connection (maxclients).'
    : 'If these ports use TLS, redis.url must begin with rediss://. Other usual reasons are no free connection (maxclients), or no password, without which Redis accepts only its own machine.'
  return `Check hosts and ports in redis.url, and look for the reason in the log of Redis. ${reasons}`
}

/** Warns if Redis may evict data, or may lose data in a restart or a failover. */
export function redisFindings(servers: readonly RedisFacts[]): Finding[] {
  const found = servers.flatMap(facts => [...findingsOf(facts)])
  if (found.length === 0) return [ok`Redis evicts nothing, and keeps its data across a restart.`]
  // The nodes of a cluster often have the same findings, so each message is reported once.
  return [...new Map(found.map(finding => [finding.message, finding])).values()]
}

function* findingsOf(facts: RedisFacts): Generator<Finding> {
  const policy = facts.maxmemory_policy ?? facts['maxmemory-policy']
  if (policy !== undefined && policy !== 'noeviction')
    yield warning`Redis evicts data when its memory is full (maxmemory-policy ${policy}). If it evicts the entry of a session, refreshes of this session wait, and old cookies of a logged-out session may work again. With session.store redis, the user is signed out. Next: Set maxmemory-policy to noeviction.`

  const hasLog = facts.aof_enabled === '1' || facts.appendonly === 'yes'
  const isKept = hasLog || Number(facts.connected_slaves) > 0
  const { save } = facts
  if (!isKept && save !== undefined)
    yield warning`Redis ${save === '' ? 'keeps nothing on disk' : 'saves only snapshots'} and has no replica. A restart loses logouts that no running replica remembers, so old cookies work again. It also loses refreshed sessions that have not reached the browser, and with session.store redis all sessions. Next: Set appendonly to yes.`

  // After a failover, the old master accepts writes until the sentinels demote it, and these writes are lost. With
  // min-replicas-to-write, a master without a replica rejects writes instead.
  if (facts['min-replicas-to-write'] === '0')
    yield warning`Redis accepts writes without a replica (min-replicas-to-write 0). After a failover, the old master can accept writes that are then lost, such as logouts and refreshed sessions. Next: Set min-replicas-to-write to 1 and min-replicas-max-lag to 10, on the master and on its replicas.`

  const unknown = [
    policy === undefined && 'its eviction policy',
    !isKept && save === undefined && 'whether it keeps its data'
  ].filter(Boolean)
  if (unknown.length > 0)
    yield warning`Redis does not report ${unknown.join(' and ')}. Next: Allow this user to call INFO and CONFIG GET, or make sure yourself that Redis has maxmemory-policy noeviction and appendonly yes.`
}
