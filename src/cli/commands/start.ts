import { announce } from '../announce.js'
import { tls } from '../check/tls.js'
import { type Command, type Invocation, sourcesOf } from '../command.js'
import { endOnUncaughtErrors } from '../crash.js'
import { demoSettings, openDemo, readDemoOptions } from '../demo.js'
import { type HeldSignals, holdSignals } from '../held-signals.js'
import { listenError } from '../listen-error.js'
import { reloadSecretsOnHangup } from '../reload.js'
import { untilStopped } from '../signals.js'

export const start: Command = async function start(invocation) {
  const signals = holdSignals(invocation.terminal)
  try {
    return await serve(invocation, signals)
  } finally {
    signals.release()
  }
}

async function serve(invocation: Invocation, { onSignal }: HeldSignals): Promise<number> {
  const { terminal } = invocation
  // Before anything is loaded: without a working directory a library of Koa's fails in words of its own.
  const sources = sourcesOf(invocation)
  // Loaded only now, when signals are heard: it takes most of the time of a start.
  const [{ loadConfig }, { createLog }, { startServer }] = await Promise.all([
    import('../../config/load.js'),
    import('../../log.js'),
    import('../../server.js')
  ])
  const demoOptions = readDemoOptions(invocation)
  // With a demo this is a first look, which tells the port and the log; the demo's own settings are known when it runs.
  const first = await loadConfig(demoOptions ? { ...sources, ...demoSettings() } : sources)
  const isTerminal = terminal.stdout.isTTY === true
  const log = await createLog({ ...first.config.log, pretty: first.config.log.pretty ?? isTerminal }, terminal.log)

  const stopWatching = endOnUncaughtErrors(terminal, log)

  const demo = demoOptions && (await openDemo(sources, first.config, demoOptions, log))
  try {
    const { config, warnings } = demo ? await loadConfig(demo.sources) : first
    for (const { key, origin, message } of warnings) {
      log.warn({ event: 'setting_warning', setting: key, origin }, `${key} ${message}`)
    }
    for (const { message, next } of tls(terminal.env)) log.warn({ event: 'tls_not_verified' }, `${message} ${next}`)
    const server = await startServer(config, { log, isDemo: demo !== undefined }).catch((error: unknown) => {
      throw listenError(error)
    })
    announce({ config, url: server.url, demoUrl: demo?.url }, isTerminal ? terminal.stdout : log)
    const stopReloading = reloadSecretsOnHangup({ onSignal }, server, () => loadConfig(demo?.sources ?? sources), log)
    const { exit, stderr } = terminal
    return await untilStopped({ onSignal, exit, stderr }, () => server.close()).finally(stopReloading)
  } finally {
    stopWatching()
    await demo?.close()
  }
}
