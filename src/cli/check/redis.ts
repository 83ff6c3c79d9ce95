import { parseRedisAddress } from '../../config/redis-address.js'
import type { Config } from '../../config/settings.js'
import { redisConditions } from '../../coordination/condition.js'
import { redisTrouble } from '../../coordination/probe.js'
import { about, type Finding } from './finding.js'
import { redisFindings, unknownCondition } from './redis-condition.js'
import { connectionTrouble } from './trouble.js'

const { ok, failed } = about('redis')

const TIMEOUT_SECONDS = 2

/** Tries the commands that replicas use, then asks Redis for its memory and persistence. */
export async function redis(config: Config): Promise<Finding[]> {
  if (config.redisUrl === undefined) {
    return [ok('None is set: fine for one process; several replicas need redisUrl.')]
  }
  const trouble = await redisTrouble(config, TIMEOUT_SECONDS * 1000)
  if (trouble === undefined) {
    return [ok('Redis answers, and takes what replicas write there.'), ...(await conditionOf(config))]
  }
  const [message, next] = refusals[trouble] ?? unreachable(trouble, config.redisUrl)
  return [failed(message, next)]
}

async function conditionOf(config: Config): Promise<Finding[]> {
  try {
    return redisFindings(await redisConditions(config, TIMEOUT_SECONDS * 1000))
  } catch {
    return [unknownCondition()]
  }
}

const rights = 'Give the user of redisUrl the commands EVAL, GET, SET, DEL, PTTL, PUBLISH and SUBSCRIBE.'
const credentials = 'Compare user and password in redisUrl with those of Redis.'

const refusals: Readonly<Record<string, readonly [message: string, next: string]>> = {
  NOAUTH: ['Redis wants a password (NOAUTH).', credentials],
  WRONGPASS: ['Redis refuses user or password (WRONGPASS).', credentials],
  NOPERM: ['Redis does not let this user do what replicas need (NOPERM).', rights],
  READONLY: ['This Redis only reads (READONLY): it is a replica.', 'Set redisUrl to the master, or to the sentinels.'],
  OOM: ['Redis is full (OOM).', 'Raise maxmemory; what is kept here is small and expires by itself.'],
  MISCONF: ['Redis takes no writes, for it cannot save its data (MISCONF).', 'Look into the log of Redis.'],
  MOVED: ['This Redis is a node of a cluster (MOVED).', 'Add ?cluster to redisUrl.'],
  ERR: [
    'Redis does not do what it is asked (ERR).',
    'Check the database number in redisUrl, whether this Redis is a cluster, and that it is version 7 or later.'
  ],
  LOADING: ['Redis is still loading its data (LOADING).', 'Check again in a moment.']
}

function unreachable(reason: string, redisUrl: string): readonly [message: string, next: string] {
  const { hosts = [], tls = false, masterName } = parseRedisAddress(redisUrl) ?? {}
  const host = hosts.map(({ host, port }) => `${host}:${port}`).join(', ')
  if (/^[A-Z]+$/.test(reason) && !reason.startsWith('E')) {
    return [`Redis at ${host} refuses (${reason}).`, 'Look for this word in the documentation of Redis.']
  }
  if (reason === 'connection lost' && masterName !== undefined) {
    const message = `The sentinels at ${host} cannot be reached, or do not know a master ${masterName}.`
    return [message, 'Check their addresses and the name behind sentinel= in redisUrl.']
  }
  if (reason === 'connection lost' || reason === 'ECONNRESET') {
    const message = `Redis cannot be reached: connections to ${host} end at once.`
    return [message, 'Check hosts and ports in redisUrl, and whether they speak TLS (rediss://) or not (redis://).']
  }
  const code = reason === 'timeout' ? 'ETIMEDOUT' : reason
  const { message, next } = connectionTrouble(code, { host, setting: 'redisUrl', timeoutSeconds: TIMEOUT_SECONDS })
  return [`Redis cannot be reached: ${message}`, code === 'ETIMEDOUT' ? patience(tls) : next]
}

// Redis keeps silent where TLS is spoken to a port that does not expect it.
function patience(tls: boolean): string {
  const firewall = 'Check whether a firewall is in between'
  return tls ? `${firewall}, and that this port speaks TLS, as rediss:// says.` : `${firewall}.`
}
