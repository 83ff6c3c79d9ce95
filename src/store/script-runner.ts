import { createHash } from 'node:crypto'
import type { RedisCommands } from './redis-client.js'

/** Sends one command to Redis and returns its reply. Rejects with RedisUnavailableError or StoredDataError. */
export type SendCommand = <T>(command: (commands: RedisCommands) => Promise<T>) => Promise<T>

/**
 * Runs a script with its keys and arguments, and returns its reply. Redis finds a script that it has run before by its
 * digest.
 */
export type RunScript<Name extends string> = <T>(
  name: Name,
  keys: readonly string[],
  args: readonly (string | number)[]
) => Promise<T>

/** @param lua the text of each script */
export function createScriptRunner<Name extends string>(
  send: SendCommand,
  lua: Readonly<Record<Name, string>>
): RunScript<Name> {
  const digests = new Map<string, string>()
  for (const name in lua) digests.set(name, createHash('sha1').update(lua[name]).digest('hex'))

  return async function runScript<T>(name: Name, keys: readonly string[], args: readonly (string | number)[]) {
    const keysAndArgs = [keys.length, ...keys, ...args] as const
    return (await send(commands =>
      commands.evalsha(digests.get(name) as string, ...keysAndArgs).catch((error: Error) => {
        if (!error.message.startsWith('NOSCRIPT')) throw error
        return commands.eval(lua[name], ...keysAndArgs)
      })
    )) as T
  }
}
