import { parseRedisAddress } from '../../config/redis-address.js'
import type { Config } from '../../config/settings.js'
import { redisTrouble } from '../../coordination/probe.js'
import { about, type Finding } from './finding.js'
import { connectionTrouble } from './trouble.js'

const { ok, failed } = about('redis')

const TIMEOUT_SECONDS = 2

/** Does in Redis what replicas do there. */
export async function redis(config: Config): Promise<Finding[]> {
  if (config.redisUrl === undefined) {
    return [ok('None is set: fine for one process; several replicas need redisUrl.')]
  }
  const trouble = await redisTrouble(config, TIMEOUT_SECONDS * 1000)
  if (trouble === undefined) return [ok('Redis answers, and takes what replicas write there.')]
  const [message, next] = refusals[trouble] ?? unreachable(trouble, config.redisUrl)
  return [failed(message, next)]
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
  LOADING: ['Redis is still loading its data (LOADING).', 'Check again in a moment.']
}

function unreachable(reason: string, redisUrl: string): readonly [message: string, next: string] {
  const hosts = parseRedisAddress(redisUrl)?.hosts ?? []
  const host = hosts.map(({ host, port }) => `${host}:${port}`).join(', ')
  if (/^[A-Z]+$/.test(reason) && !reason.startsWith('E')) {
    return [`Redis at ${host} refuses (${reason}).`, 'Look for this word in the documentation of Redis.']
  }
  const code = reason === 'timeout' ? 'ETIMEDOUT' : reason
  const { message, next } = connectionTrouble(code, { host, setting: 'redisUrl', timeoutSeconds: TIMEOUT_SECONDS })
  return [
    `Redis cannot be reached: ${message}`,
    code === 'ETIMEDOUT' ? 'Check whether a firewall is in between.' : next
  ]
}
