import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Logger } from 'pino'
import type { LoadedConfig } from '../../config/load.js'
import type { Config, SettingKey } from '../../config/settings.js'
import type { RunningServer } from '../../start.js'
import { coloursFor } from '../../support/colours.js'
import { version } from '../../support/version.js'
import { checkCallback } from '../check/callback-and-port.js'
import type { Finding } from '../check/findings.js'
import { checkTls, checkWwwroot } from '../check/settings.js'
import { type Command, type Invocation, readDemoOptions, sourcesOf } from '../command.js'
import { exitCodes, listenError } from '../errors.js'
import { holdSignals, reloadSecretsOnHangup, untilStopped } from '../signals.js'
import { columnsOf, programPath, type Terminal } from '../terminal.js'
import { startTracing } from '../tracing.js'

export const start: Command = async function start(invocation) {
  if (invocation.options.watch === true) return watch(invocation.terminal)
  const signals = holdSignals(invocation.terminal)
  try {
    return await serve(invocation, signals.onSignal)
  } finally {
    signals.release()
  }
}

// Node's watch mode loses a signal that arrives while it restarts the program, so the signal is repeated.
const REPEAT_MS = 2000

/**
 * Runs the server in Node's watch mode, which restarts the server when one of its modules changes, such as the module
 * of the setting `extend` or a module that it imports. Stops the server at a signal and returns the exit code.
 */
async function watch(terminal: Terminal): Promise<number> {
  const args = terminal.args.filter(arg => arg !== '--watch')
  // The watch mode runs in a separate process group. The server therefore gets no signal from the terminal, and only
  // the watch mode tells it to stop.
  const node = spawn(process.execPath, ['--watch', '--watch-preserve-output', programPath, ...args], {
    cwd: terminal.cwd,
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true
  })
  const ended = once(node, 'exit')
  let isStopping = false
  const stop = async () => {
    isStopping = true
    node.kill('SIGTERM')
    const repeated = setInterval(() => node.kill('SIGTERM'), REPEAT_MS)
    await ended
    clearInterval(repeated)
  }
  // The terminal sends SIGHUP when it is closed.
  const removeListener = terminal.onSignal('SIGHUP', stop)
  try {
    const exitCode = ended.then(() => (isStopping ? exitCodes.fine : exitCodes.failed))
    return await Promise.race([untilStopped(terminal, stop), exitCode])
  } finally {
    removeListener()
  }
}

async function serve(invocation: Invocation, onSignal: Terminal['onSignal']): Promise<number> {
  const { terminal } = invocation
  const demo = readDemoOptions(invocation)
  // Reads the working directory before Koa is loaded. If the directory no longer exists, our error message says so. A
  // library of Koa would throw an unclear error.
  const sources = { ...sourcesOf(invocation), demo: demo !== undefined }
  // Loading these modules takes most of the time of a start, so they are loaded only after the signals are held.
  const [{ loadConfig }, { createLog }, { start: startServer }] = await Promise.all([
    import('../../config/load.js'),
    import('../../log.js'),
    import('../../start.js')
  ])
  const loaded = await loadConfig(sources)
  const { config } = loaded
  const isTerminal = terminal.stdout.isTTY === true
  const logSettings = { ...config.log, pretty: config.log.pretty ?? isTerminal }
  const log = createLog(logSettings, terminal.log, coloursFor(terminal))

  const stopWatching = endOnUncaughtErrors(terminal, log)
  const tracing = await startTracing(terminal.env, log)
  try {
    for (const { setting, source, message } of await startWarnings(loaded)) {
      log.warn({ event: 'setting_warning', setting, source }, message)
    }
    for (const { message, next } of checkTls(terminal.env))
      log.warn({ event: 'tls_not_verified' }, `${message} ${next}`)
    const server = await startServer(config, { log, demo: demo ?? false, ...(tracing && { tracing }) }).catch(
      (error: unknown) => {
        throw listenError(error)
      }
    )
    if (isTerminal) announceOnTerminal(config, server, terminal)
    else announceInLog(config, server, log)
    const stopReloading = reloadSecretsOnHangup({ onSignal }, server, config, () => loadConfig(sources), log)
    const { env, exit, hangUp, stderr, onParentEnded, onTerminalClosed } = terminal
    const parts = { env, exit, hangUp, stderr, onParentEnded, onTerminalClosed, onSignal }
    const close = async (reason: string) => {
      await server.close(reason)
      await tracing?.close()
    }
    return await untilStopped(parts, close).finally(stopReloading)
  } finally {
    stopWatching()
  }
}

interface StartWarning {
  /** The setting, or a file or variable whose name resembles a setting. */
  readonly setting: string
  readonly source: string
  readonly message: string
}

/** Returns the warnings about the settings, and the warnings and failures of the checks `callback` and `wwwroot`. */
export async function startWarnings({ config, sources, warnings }: LoadedConfig): Promise<StartWarning[]> {
  const warningsOf = (setting: SettingKey) => (finding: Finding) => toWarnings(setting, sources[setting], finding)
  // With port 0, the system chooses the port, so the operator cannot write it into the callback URL. A warning would
  // not help.
  const callbackFindings = config.port === 0 ? [] : checkCallback(config)
  return [
    ...warnings.map(({ key, source, message }) => ({ setting: key, source, message: `${key} ${message}` })),
    ...callbackFindings.flatMap(warningsOf('platform.callbackUrl')),
    ...(await checkWwwroot(config)).flatMap(warningsOf('wwwroot'))
  ]
}

function toWarnings(setting: SettingKey, source: string, { status, message, next }: Finding): StartWarning[] {
  return status === 'ok' ? [] : [{ setting, source, message: `${message} ${next}` }]
}

/**
 * Logs an uncaught error and ends the process, because the state of the process can no longer be trusted. Exit code 1 tells
 * a supervisor to start a new process. Returns a function that removes the listener.
 */
export function endOnUncaughtErrors(
  { onUncaught, exit }: Pick<Terminal, 'onUncaught' | 'exit'>,
  log: Pick<Logger, 'fatal'>
): () => void {
  return onUncaught(thrown => {
    try {
      const err = thrown instanceof Error ? thrown : new Error(String(thrown))
      log.fatal({ event: 'crashed', err }, 'the process ends after an uncaught error')
    } finally {
      exit(exitCodes.failed)
    }
  })
}

type ServerAddresses = Pick<RunningServer, 'url' | 'callbackUrl' | 'demoUrl'>

/**
 * Prints the URL to open and the most important settings for an operator at a terminal. A note that does not fit into the
 * width of the terminal gets its own line.
 */
export function announceOnTerminal(
  { mode, wwwroot }: Config,
  { url, callbackUrl, demoUrl }: ServerAddresses,
  terminal: Pick<Terminal, 'stdout' | 'env'>
): void {
  const { bold, dim, green, cyan } = coloursFor(terminal)
  const columns = columnsOf(terminal.stdout) ?? Number.POSITIVE_INFINITY
  const facts: readonly (readonly [name: string, value: string, note?: string])[] = [
    ['Open', `${url}/`],
    ['Mode', mode],
    wwwroot === undefined ? ['Pages', 'the starter page', '(put your pages into ./wwwroot)'] : ['Pages', wwwroot],
    demoUrl === undefined
      ? ['Callback', callbackUrl, '(register this URL at the provider)']
      : ['Callback', callbackUrl],
    ...(demoUrl === undefined ? [] : [['Demo', demoUrl, '(sign in as anyone, without a password)'] as const])
  ]
  const lines = facts.map(([name, value, note]) => {
    const label = `  ➜  ${`${name}:`.padEnd(10)} `
    const shown = name === 'Open' ? cyan(value) : value
    const fits = note !== undefined && label.length + value.length + 1 + note.length <= columns
    const end = note === undefined ? '' : `${fits ? ' ' : `\n${' '.repeat(label.length)}`}${dim(note)}`
    return `  ${green('➜')}  ${bold(`${name}:`.padEnd(10))} ${shown}${end}\n`
  })
  terminal.stdout.write(`\n  ${bold(`platform-auth-server ${version()}`)}\n\n${lines.join('')}\n`)
}

/** Logs the start of the server as one event. */
export function announceInLog({ mode }: Config, { url, callbackUrl, demoUrl }: ServerAddresses, log: Logger): void {
  const demo = demoUrl === undefined ? {} : { demo: demoUrl }
  log.info({ event: 'server_started', url, mode, callbackUrl, version: version(), ...demo }, 'listening')
}
