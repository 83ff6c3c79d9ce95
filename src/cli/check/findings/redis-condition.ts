import type { RedisCondition } from '../../../store/redis-condition.js'
import { type Finding, findingsFor } from '../finding.js'

const { ok, warning } = findingsFor('redis')

const MAX_USED_RATIO = 0.8

/** Warns if Redis may evict data, is nearly full, or loses its data at a restart. */
export function redisFindings(conditions: readonly RedisCondition[]): Finding[] {
  const found = conditions
    .flatMap(condition => [eviction(condition), headroom(condition), persistence(condition), unknown(condition)])
    .filter(finding => finding !== undefined)
  if (found.length === 0) return [ok('Redis evicts nothing, has free memory, and keeps its data at a restart.')]
  // The nodes of a cluster often have the same findings, so each message is reported once.
  return [...new Map(found.map(finding => [finding.message, finding])).values()]
}

function eviction({ evictionPolicy: policy = 'noeviction' }: RedisCondition): Finding | undefined {
  if (policy === 'noeviction') return undefined
  return warning(
    `Redis evicts data when its memory is full (maxmemory-policy ${policy}). If it evicts the entry of a session, refreshes of this session wait, and old cookies of a logged-out session may work again.`,
    'Set maxmemory-policy to noeviction.'
  )
}

function headroom({ usedBytes = 0, maxBytes }: RedisCondition): Finding | undefined {
  if (maxBytes === 0) {
    return warning(
      'Redis has no memory limit (maxmemory 0), so no alert can tell how full it is.',
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

function persistence({ persistence: kind, hasFailedToSave, hasReplicas }: RedisCondition): Finding | undefined {
  if (hasFailedToSave) {
    return warning(
      'Redis could not save its data to disk. It may refuse all writes until saving succeeds.',
      'Look for the reason in the log of Redis, for example a full disk.'
    )
  }
  if (kind === undefined || kind === 'append-only file' || hasReplicas) return undefined
  const what = kind === 'none' ? 'Redis keeps nothing on disk' : 'Redis saves only snapshots'
  return warning(
    `${what} and has no replica. A restart loses logouts that no running replica remembers, so old cookies work again. It also loses refreshed sessions that have not reached the browser.`,
    'Set appendonly to yes.'
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
  return topics.length > 0 ? notReported(topics.join(', ')) : undefined
}

/** Returns the finding for a Redis server that answers but does not report its memory and persistence settings. */
export function unknownCondition(): Finding {
  return notReported('its eviction policy, how full it is, whether it keeps its data')
}

function notReported(topics: string): Finding {
  return warning(
    `Redis does not report ${topics}.`,
    'Allow INFO and CONFIG GET to this user, or make sure yourself that it has maxmemory-policy noeviction, enough maxmemory and appendonly yes.'
  )
}

function mebibytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024)
}
