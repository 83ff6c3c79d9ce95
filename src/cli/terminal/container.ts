import { readFileSync } from 'node:fs'

/**
 * Adds the flags of the server to `health` without flags in a container, where the server is process 1 or, with `docker run
 * --init`, its only command. A health check in a Dockerfile cannot know the flags of `docker run`.
 * @param commandLine of process 1, with a null character after each word
 */
export function withFlagsOfContainer(
  args: readonly string[],
  commandLine: () => string = () => readFileSync('/proc/1/cmdline', 'utf8')
): readonly string[] {
  if (args.length !== 1 || args[0] !== 'health') return args
  let words: string[]
  try {
    words = commandLine().split('\0').slice(0, -1)
  } catch {
    // There is no such file on this system, or this user may not read it.
    return args
  }
  const index = words.findIndex(word => /(^|\/)platform-auth-server(\.js)?$/.test(word))
  const [first, ...others] = index === -1 ? [] : words.slice(index + 1)
  if (first === undefined) return args
  return [...args, ...(first === 'start' ? others : [first, ...others])]
}
