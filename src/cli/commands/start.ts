import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Logger } from 'pino'
import { coloursFor } from '../../base/colours.js'
import { isError } from '../../base/error-code.js'
import { programPath, version } from '../../base/package.js'
import type { Tracing } from '../../base/tracing.js'
import type { LoadedConfig } from '../../config/load.js'
import type { Config } from '../../config/settings.js'
import type { Environment } from '../../config/sources/dot-env.js'
import type { RunningServer } from '../../server/start-server.js'
import { checkCallback } from '../check/callback-and-port.js'
import { checkTls, checkWwwroot } from '../check/local-settings.js'
import { type Command, type Invocation, readDemoOptions, sourcesOf } from '../terminal/command.js'
import { exitCodes, listenError, messageOf } from '../terminal/expected-errors.js'
import { columnsOf, type Terminal } from '../terminal/terminal.js'
import { holdSignals, reloadSecretsOnHangup, untilStopped } from './signals.js'

export const start: Command = async function start(invocation) {
  if (invocation.options.watch === true) return watch(invocation.terminal)
  const signals = holdSignals(invocation.terminal)
  try {
    // The copy reads the working directory before Koa is loaded, and the error explains if this directory no longer exists.
    // Otherwise, a dependency of Koa throws an unclear error.
    const terminal = { ...invocation.terminal, onSignal: signals.onSignal }
    return await runServer({ ...invocation, terminal })
  } finally {
    signals.release()
  }
}

// Node's watch mode loses a signal that arrives while it restarts the program, so the signal is repeated.
const REPEAT_MS = 2000

/**
 * Runs the server in Node's watch mode, which restarts the server when one of its modules changes, such as the module
 * of the setting `extension` or a module that it imports. Stops the server at a signal and returns the exit code.
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
  // The terminal sends SIGHUP when it is closed, and the watch mode must then stop, too.
  const removeListener = terminal.onSignal('SIGHUP', stop)
  try {
    const exitCode = ended.then(() => (isStopping ? exitCodes.fine : exitCodes.failed))
    return await Promise.race([untilStopped(terminal, stop), exitCode])
  } finally {
    removeListener()
  }
}

async function runServer(invocation: Invocation): Promise<number> {
  const { terminal } = invocation
  const demo = readDemoOptions(invocation)
  const sources = { ...sourcesOf(invocation), demo: demo !== undefined }
  // Loading these modules takes most of the time of a start, so they are loaded only after the signals are held.
  const [{ loadConfig }, { createLog }, { start: startServer }] = await Promise.all([
    import('../../config/load.js'),
    import('../../server/log.js'),
    import('../../server/start-server.js')
  ])
  const loaded = await loadConfig(sources)
  const { config } = loaded
  const isTerminal = terminal.stdout.isTTY === true
  const auto = isTerminal ? 'text' : 'json'
  const format = config.log.format === 'auto' ? auto : config.log.format
  const log = createLog({ ...config.log, format }, terminal.log, coloursFor(terminal))

  const stopWatching = endOnUncaughtErrors(terminal, log)
  const tracing = await startTracing(terminal.env, log)
  try {
    await logWarnings(loaded, terminal.env, log)
    const starting = startServer(config, { log, demo: demo ?? false, ...(tracing && { tracing }) })
    const server = await starting.catch((error: unknown) => {
      throw listenError(error)
    })
    if (isTerminal) announceOnTerminal(config, server, terminal)
    else announceInLog(config, server, log)
    const stopReloading = reloadSecretsOnHangup(terminal, server, config, () => loadConfig(sources), log)
    const close = async (reason: string) => {
      await server.close(reason)
      await tracing?.close()
    }
    return await untilStopped(terminal, close).finally(stopReloading)
  } finally {
    stopWatching()
  }
}

/** Logs the warnings about the settings, and the warnings and failures of the checks `callback`, `wwwroot` and `tls`. */
async function logWarnings({ config, sources, warnings }: LoadedConfig, env: Environment, log: Logger): Promise<void> {
  const warn = (setting: string, source: string, message: string) =>
    log.warn({ event: 'setting_warning', setting, source }, message)
  for (const { key, source, message } of warnings) warn(key, source, `${key} ${message}`)
  // With port 0, the system chooses the port, so the operator cannot write it into the callback URL. A warning would
  // not help.
  const callbackFindings = config.port === 0 ? [] : checkCallback(config)
  for (const [setting, findings] of [
    ['platform.callbackUrl', callbackFindings],
    ['wwwroot', [await checkWwwroot(config)]]
  ] as const)
    for (const { status, message, next } of findings)
      if (status !== 'ok') warn(setting, sources[setting], `${message} ${next}`)
  for (const { message, next } of checkTls(env)) log.warn({ event: 'tls_not_verified' }, `${message} ${next}`)
}

/**
 * Logs an uncaught error and ends the process, because the state of the process can no longer be trusted. Exit code 1 tells
 * a supervisor to start a new process. Returns a function that removes the listener.
 */
function endOnUncaughtErrors({ onUncaught, exit }: Terminal, log: Logger): () => void {
  return onUncaught(thrown => {
    try {
      const err = isError(thrown) ? thrown : new Error(String(thrown))
      log.fatal({ event: 'server_crashed', err }, 'the process ends after an uncaught error')
    } finally {
      exit(exitCodes.failed)
    }
  })
}

/**
 * Starts tracing if the `OTEL_*` variables ask for it. If the SDK of OpenTelemetry is missing, the log says how to
 * install it, and the server runs without tracing. A hosting platform may set these variables for all programs, so a
 * missing SDK does not stop the start.
 */
async function startTracing(env: Environment, log: Pick<Logger, 'warn'>): Promise<Tracing | undefined> {
  const variable = tracingVariable(env)
  if (variable === undefined) return undefined
  const onProblem = (problem: string) =>
    log.warn({ event: 'tracing_problem' }, `OpenTelemetry reports a problem, so some traces may be lost: ${problem}`)
  try {
    const { openTracing } = await import('../../base/open-telemetry.js')
    return openTracing(version(), onProblem)
  } catch (error) {
    const problem = `${variable} is set, but the SDK of OpenTelemetry cannot be loaded, so no traces are sent`
    const advice = 'Install @opentelemetry/sdk-node next to platform-auth-server (docs/reference/logs-and-traces.md).'
    log.warn({ event: 'tracing_unavailable' }, `${problem}: ${messageOf(error)}. ${advice}`)
    return undefined
  }
}

/**
 * Returns the variable that switches tracing on, or undefined. An empty value counts as not set, as the specification of
 * OpenTelemetry says.
 */
export function tracingVariable(env: Environment): string | undefined {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none') return undefined
  const names = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_TRACES_EXPORTER']
  return names.find(name => env[name])
}

type ServerUrls = Pick<RunningServer, 'url' | 'callbackUrl' | 'demoUrl'>

/**
 * Prints the URL to open and the most important settings for an operator at a terminal. A note that does not fit into the
 * width of the terminal gets its own line.
 */
function announceOnTerminal({ mode, wwwroot }: Config, { url, callbackUrl, demoUrl }: ServerUrls, terminal: Terminal) {
  const { bold, dim, green, cyan } = coloursFor(terminal)
  const columns = columnsOf(terminal.stdout) ?? Number.POSITIVE_INFINITY
  const lineOf = (name: string, value: string, note = '', colour = (text: string) => text) => {
    const label = `  ➜  ${`${name}:`.padEnd(10)} `
    const gap = label.length + value.length + 1 + note.length <= columns ? ' ' : `\n${' '.repeat(label.length)}`
    return `  ${green('➜')}  ${bold(`${name}:`.padEnd(10))} ${colour(value)}${note && `${gap}${dim(note)}`}\n`
  }
  const lines = [
    lineOf('Open', `${url}/`, '', cyan),
    lineOf('Mode', mode),
    lineOf('Files', wwwroot ?? 'the starter page', wwwroot === undefined ? '(put your pages into ./wwwroot)' : ''),
    lineOf('Callback', callbackUrl, demoUrl === undefined ? '(register this URL with the provider)' : ''),
    demoUrl === undefined ? '' : lineOf('Demo', demoUrl, '(sign in as anyone, without a password)')
  ]
  terminal.stdout.write(`\n  ${bold(`platform-auth-server ${version()}`)}\n\n${lines.join('')}\n`)
}

/** Logs the start of the server as one event. */
function announceInLog({ mode }: Config, { url, callbackUrl, demoUrl }: ServerUrls, log: Logger): void {
  const demo = demoUrl === undefined ? {} : { demo: demoUrl }
  log.info({ event: 'server_started', url, mode, callback_url: callbackUrl, version: version(), ...demo }, 'listening')
}
