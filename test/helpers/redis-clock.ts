// Lets a real Redis run on the clock of a test, so that the tokens, leases and pauses of the test expire together.
import { openRedisClient, type RedisCommands } from '#src/sessions/redis/redis-client.js'

// On a slow machine, not every connection to Redis and not every reply arrives within the time limits of the store. The
// socket has a time limit of 3 seconds. Tests do not wait for the recovery time, because their Redis has lost nothing.
export const PATIENT = { commandMs: 20_000, startMs: 40_000, recoveryMs: 0 }
/** For tests of outages. */
export const IMPATIENT = { commandMs: 2500, startMs: 5000, recoveryMs: 500 }

type Script = RedisCommands['evalsha']

// The position of the time among the arguments of the script after its digest.
const TIME = 7

/**
 * Returns a function that connects to Redis and translates the times in commands and replies.
 * @param now the clock of the test, in milliseconds since the epoch
 */
export function openRedisAt(now: () => number): typeof openRedisClient {
  const aheadMs = () => now() - Date.now()

  return async function open(...parameters) {
    const client = await openRedisClient(...parameters)
    const { commands } = client
    const translated = (run: Script): Script =>
      (async (script: string, ...args: (string | number)[]) => {
        const real = args.map((arg, index) => (index === TIME ? Math.round(Number(arg) - aheadMs()) : arg))
        const [isDone, , ...rest] = (await run(script, ...(real as [number]))) as [number, number, ...unknown[]]
        // Not the real time of Redis: a clock that stands still must not seem to be behind because the reply took long.
        return [isDone, now(), ...rest]
      }) as Script
    return {
      close: client.close,
      reconnect: client.reconnect,
      commands: {
        hget: commands.hget.bind(commands),
        hmget: commands.hmget.bind(commands),
        hstrlen: commands.hstrlen.bind(commands),
        publish: commands.publish.bind(commands),
        evalsha: translated(commands.evalsha.bind(commands)),
        eval: translated(commands.eval.bind(commands))
      }
    }
  }
}
