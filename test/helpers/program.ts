// Runs the program as operators do: as a separate process, with settings from flags, environment variables and files,
// and with its log on standard output.
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ExecutionContext } from 'ava'
import type { KnownIdp } from './config.js'
import type { HostileIdp } from './hostile-idp/index.js'
import type { LogEntry } from './logs.js'
import { repository } from './repository.js'

export type Program = Awaited<ReturnType<typeof startProgram>>

export interface ProgramOptions extends Pick<SpawnOptions, 'cwd' | 'uid' | 'gid'> {
  readonly command?: readonly string[]
  /** Starts the program in its own process group, as a shell does. Signals then go to all processes of the group. */
  readonly group?: boolean
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Receives each log line when the program writes it. */
  readonly onLine?: (line: LogEntry) => void
}

const script = `${repository}bin/platform-auth-server.js`

export const defaultCommand = [process.execPath, script]

/**
 * A module for Node's `--import`. On SIGUSR2 it moves the program's clock one hour ahead and prints the line
 * `clock_moved`.
 */
export const movableClock = fileURLToPath(new URL('./movable-clock.js', import.meta.url))

export const commandWithMovableClock = [process.execPath, '--import', movableClock, script]

// Programs are killed when the process of the tests exits, for whatever reason.
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Starts the program and resolves when it listens. */
export async function startProgram(t: Pick<ExecutionContext, 'teardown'>, options: ProgramOptions) {
  const { command = defaultCommand, group = false, args = [], env = {}, onLine, ...how } = options
  const [file = '', ...more] = command
  // The program gets none of this process's environment except PATH.
  const child = spawn(file, [...more, ...args], { ...how, detached: group, env: { PATH: process.env.PATH, ...env } })
  running.add(child)
  child.once('exit', () => running.delete(child))
  const { pid = 0 } = child
  const signal = (name: NodeJS.Signals) => {
    if (group) process.kill(-pid, name)
    else child.kill(name)
  }
  t.teardown(() => child.exitCode === null && child.signalCode === null && signal('SIGKILL'))
  const ended = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null
  }))
  const lines: LogEntry[] = []
  const watchers = new Set<() => void>()
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  createInterface(child.stdout).on('line', text => {
    // If this process does not read for a second, the program drops a line and writes a line break instead.
    if (text === '') return
    const line = parse(text)
    lines.push(line)
    onLine?.(line)
    for (const look of watchers) look()
  })

  /**
   * Resolves with the `count`-th log line of this event (default 1), which may already have been logged. Rejects if the
   * program ends first.
   */
  async function logged(event: string, count = 1): Promise<LogEntry> {
    const found = () => lines.filter(line => line.event === event)[count - 1]
    const seen = new Promise<LogEntry>(resolve => {
      const look = () => {
        const line = found()
        if (!line) return
        watchers.delete(look)
        resolve(line)
      }
      watchers.add(look)
      look()
    })
    return Promise.race([
      seen,
      ended.then(({ code, signal }) => {
        throw new Error(`It ended with ${code ?? signal} and no ${event}: ${stderr} ${JSON.stringify(lines)}`)
      })
    ])
  }

  // The URL that the program logs when it listens.
  const { url } = await logged('server_started')
  return { child, url: String(url), signal, lines, stderr: () => stderr, logged, ended }
}

function parse(text: string): LogEntry {
  try {
    return JSON.parse(text) as LogEntry
  } catch {
    return { event: 'not_json', text }
  }
}

const SESSION_SECRET = 'Jq7vT2mXz9LwRk4NpY6sHd3BfGc8UaEe'

/**
 * The settings that a server needs to log in at `idp` and to listen on a free port of 127.0.0.1. The time limit is longer than by
 * default, because a busy machine needs long for the first request to the provider, which loads a package.
 */
export function environmentFor(
  idp: Pick<HostileIdp, 'clientId' | 'clientSecret' | 'issuer'>,
  callbackUrl: string
): Record<string, string> {
  return {
    PORT: '0',
    PLATFORM_AUTH_HOST: '127.0.0.1',
    PLATFORM_CLIENT_ID: idp.clientId,
    PLATFORM_CLIENT_SECRET: idp.clientSecret,
    PLATFORM_ISSUER: idp.issuer,
    PLATFORM_TIMEOUT: '60',
    PLATFORM_AUTH_SHUTDOWN_GRACE: '120',
    PLATFORM_CALLBACK_URL: callbackUrl,
    PLATFORM_AUTH_ACCESS_ALLOW: '*',
    SERVER_SESSION_SECRET: SESSION_SECRET
  }
}

/** Settings as those of `environmentFor`, but with the endpoints of the provider, so the server reads no discovery document. */
export function environmentWithEndpoints(idp: KnownIdp & { issuer: string }, callbackUrl: string) {
  const { PLATFORM_ISSUER, ...settings } = environmentFor(idp, callbackUrl)
  return {
    ...settings,
    PLATFORM_AUTHORIZATION_ENDPOINT: idp.authorizationEndpoint,
    PLATFORM_TOKEN_ENDPOINT: idp.tokenEndpoint,
    PLATFORM_USERINFO_ENDPOINT: idp.userinfoEndpoint,
    PLATFORM_REVOCATION_ENDPOINT: idp.revocationEndpoint,
    PLATFORM_END_SESSION_ENDPOINT: idp.endSessionEndpoint
  }
}
