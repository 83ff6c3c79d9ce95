// Runs a server in a separate process, so that a test can measure its memory and CPU time, limit its open files, and
// see its output and its exit.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ExecutionContext } from 'ava'
import type { Config } from '#src/config/settings.js'

const script = fileURLToPath(new URL('./child.js', import.meta.url))

/**
 * @param options.freeFiles how many files and sockets the process can open while it serves, in addition to those that it has
 *   open when it starts
 */
export async function startServerProcess(
  t: Pick<ExecutionContext, 'teardown'>,
  config: Config,
  { freeFiles }: { readonly freeFiles?: number } = {}
) {
  const command = [process.execPath, '--expose-gc', script, JSON.stringify(config)]
  if (freeFiles !== undefined) command.push(String(freeFiles))
  const child = spawn(
    'sh',
    // The process opens files up to the limit, so the limit must not be that of the machine, which may be a million.
    ['-c', `${freeFiles === undefined ? '' : 'ulimit -n 1024 && '}exec "$0" "$@"`, ...command],
    {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // Coverage would slow down thousands of requests. Other tests cover the same code.
      env: { ...process.env, NODE_V8_COVERAGE: undefined }
    }
  )
  const ended = once(child, 'exit')
  t.teardown(async () => {
    if (child.connected) child.disconnect()
    await ended
  })
  const lines: string[] = []
  createInterface(child.stdout as NodeJS.ReadableStream).on('line', line => lines.push(line))
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })

  const ask = async <T>(query?: string): Promise<T> => {
    const answer = once(child, 'message').then(([message]) => message as T)
    if (query !== undefined) child.send(query)
    const gone = ended.then(() => Promise.reject(new Error(`The server process ended: ${errors}`)))
    return Promise.race([answer, gone])
  }
  const { port } = await ask<{ port: number }>()
  return {
    port,
    /** The lines that the server has written to standard output so far. */
    lines: lines as readonly string[],
    errorOutput: () => errors,
    /** Undefined while the process runs. */
    exit: () =>
      child.exitCode === null && child.signalCode === null
        ? undefined
        : { code: child.exitCode, signal: child.signalCode },
    /** The size of the heap in bytes after a garbage collection, without compiled code. */
    heapUsed: async () => (await ask<{ heapUsed: number }>('heapUsed')).heapUsed,
    /** Milliseconds of CPU time that the process has used so far. */
    cpuMs: async () => (await ask<{ cpuMs: number }>('cpuMs')).cpuMs
  }
}
