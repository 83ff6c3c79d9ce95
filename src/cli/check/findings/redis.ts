import { parseRedisAddress } from '../../../config/redis-address.js'
import type { Config } from '../../../config/settings.js'
import { redisConditions } from '../../../store/redis-condition.js'
import { redisProblem } from '../../../store/redis-probe.js'
import { explainConnectionError } from '../connection-errors.js'
import { type Finding, findingsFor } from '../finding.js'
import { redisFindings, unknownCondition } from './redis-condition.js'

const { ok, failed } = findingsFor('redis')

const TIMEOUT_SECONDS = 2

/** Runs the commands that replicas use, then reads the memory and persistence settings of Redis. */
export async function redis(config: Config): Promise<Finding[]> {
  if (config.redisUrl === undefined) {
    return [ok('No Redis is configured. One process needs none, but several replicas need redisUrl.')]
  }
  const problem = await redisProblem(config, TIMEOUT_SECONDS * 1000)
  if (problem === undefined) {
    return [ok('Redis answers and accepts the commands that replicas need.'), ...(await conditionOf(config))]
  }
  const [message, next] = refusals[problem] ?? unreachable(problem, config.redisUrl)
  return [failed(message, next)]
}

async function conditionOf(config: Config): Promise<Finding[]> {
  try {
    return redisFindings(await redisConditions(config, TIMEOUT_SECONDS * 1000))
  } catch {
    return [unknownCondition()]
  }
}

const commandAdvice =
  'Give the user of redisUrl the commands EVAL, EVALSHA, PUBLISH, SUBSCRIBE and PING, and for scripts HMGET, HSET, HDEL, GET, SET, DEL, PEXPIRE and TIME. docs/operations.md has a complete ACL line.'
const credentialsAdvice = 'Compare user and password in redisUrl with those of Redis.'

const refusals: Readonly<Record<string, readonly [message: string, next: string]>> = {
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

function unreachable(reason: string, redisUrl: string): readonly [message: string, next: string] {
  const { hosts = [], tls = false, masterName } = parseRedisAddress(redisUrl) ?? {}
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
