// Counts the commands that servers send to Redis.
import type { RedisServer } from './redis.js'

type CommandCounts = Awaited<ReturnType<typeof commandsRun>>

/** Returns how many reads and scripts Redis has run. */
export async function commandsRun({ admin }: RedisServer) {
  const stats = await admin.info('commandstats')
  const callsOf = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
  // A script that Redis does not know yet is sent once more with its text.
  const scripts = callsOf('evalsha') + callsOf('eval')
  const unknown = Number(/cmdstat_evalsha:.*failed_calls=(\d+)/.exec(stats)?.[1] ?? 0)
  // Each script reads its cell.
  return { reads: callsOf('hget') + callsOf('hmget') - (scripts - unknown), scripts: scripts - unknown }
}

export function difference(after: CommandCounts, before: CommandCounts) {
  return { reads: after.reads - before.reads, scripts: after.scripts - before.scripts }
}
