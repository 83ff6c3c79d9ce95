import { randomBytes } from 'node:crypto'
import type { Config } from '../config/settings.js'
import { createKeyring } from '../session/keyring.js'
import { reasonOf } from './redis-errors.js'
import { createRedisScripts } from './redis-scripts.js'
import { withRedis } from './with-redis.js'

const KEY_TTL_MS = 1000

/**
 * Runs the Redis commands of a login, a refresh and a logout once, in the Redis of `config`. Only the `check` command uses
 * this function. Returns undefined if all commands succeed. Otherwise returns the reason, such as `timeout`, a Node error
 * code, or the code of a Redis error reply.
 * @param timeoutMs the time limit of the whole call
 */
export async function redisProblem(config: Config, timeoutMs: number): Promise<string | undefined> {
  try {
    await withRedis(config, timeoutMs, async ({ commands }, { prefix, channel }) => {
      const times = { entryMs: KEY_TTL_MS, loginMs: KEY_TTL_MS, keepMs: KEY_TTL_MS, lockMs: KEY_TTL_MS, settleMs: 0 }
      const sealer = createKeyring([randomBytes(32).toString('base64url')]).sealer('check')
      const scripts = createRedisScripts(command => command(commands), prefix, sealer, times)
      const id = `check-${randomBytes(9).toString('base64url')}`
      const owner = 'check'
      const newLoss = 'check'
      const record = { id, rev: 1, loggedInAt: 0, issuedAt: 0, fields: { refresh_token: '', expires_at: 0 } }
      const outcome = { kind: 'tokens', record, keepsLock: false, pauseMs: 0 } as const
      await scripts.look(id, 0)
      await scripts.take(id, { rev: 0, owner, reported: undefined, newLoss })
      await scripts.hold(id, 0, owner, KEY_TTL_MS, newLoss)
      await scripts.save(id, { rev: 1, owner, outcome, newLoss })
      await scripts.seen(id, 1, newLoss)
      await scripts.unseen(id)
      await scripts.out(id)
      await commands.set(`${prefix}probe`, '1', 'PX', KEY_TTL_MS)
      await commands.publish(channel, '')
    })
    return undefined
  } catch (error) {
    return reasonOf(error)
  }
}
