import { coloursFor } from '../../support/colours.js'
import { announceInLog, announceOnTerminal } from '../announce.js'
import { tls } from '../check/settings.js'
import { type Command, type Invocation, sourcesOf } from '../command.js'
import { endOnUncaughtErrors } from '../crash.js'
import { readDemoOptions } from '../demo.js'
import { listenError } from '../listen-error.js'
import { holdSignals, reloadSecretsOnHangup, untilStopped } from '../signals.js'
import { startWarnings } from '../start-warnings.js'
import type { Terminal } from '../terminal.js'
import { startTracing } from '../tracing.js'

export const start: Command = async function start(invocation) {
  if (invocation.options.watch === true) return (await import('../watch.js')).watch(invocation.terminal)
  const signals = holdSignals(invocation.terminal)
  try {
    return await serve(invocation, signals.onSignal)
  } finally {
    signals.release()
  }
}

async function serve(invocation: Invocation, onSignal: Terminal['onSignal']): Promise<number> {
  const { terminal } = invocation
  const demo = readDemoOptions(invocation)
  // Reads the working directory before Koa is loaded. If the directory no longer exists, our error message says so. A
  // library of Koa would throw an unclear error.
  const sources = { ...sourcesOf(invocation), demo: demo !== undefined }
  // Loading these modules takes most of the time of a start. Signals that arrive in this time are already held.
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
    for (const { setting, origin, message } of await startWarnings(loaded)) {
      log.warn({ event: 'setting_warning', setting, origin }, message)
    }
    for (const { message, next } of tls(terminal.env)) log.warn({ event: 'tls_not_verified' }, `${message} ${next}`)
    const server = await startServer(config, { log, demo: demo ?? false, ...(tracing && { tracing }) }).catch(
      (error: unknown) => {
        throw listenError(error)
      }
    )
    if (isTerminal) announceOnTerminal(config, server, terminal)
    else announceInLog(config, server, log)
    const stopReloading = reloadSecretsOnHangup({ onSignal }, server, () => loadConfig(sources), log)
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
