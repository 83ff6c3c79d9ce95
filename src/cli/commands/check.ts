import { ConfigError } from '../../config/errors.js'
import { type LoadedConfig, loadConfig } from '../../config/load.js'
import { createLog } from '../../log.js'
import { openDemo } from '../../open-demo.js'
import { closeServer } from '../../support/listener.js'
import { findings } from '../check/index.js'
import { createReport } from '../check/report.js'
import { invalidSettings } from '../check/settings.js'
import { type Command, type Invocation, readDemoOptions, sourcesOf } from '../command.js'
import { exitCodes, listenError } from '../errors.js'

export const check: Command = async function check(invocation) {
  const { terminal, options } = invocation
  const report = createReport(terminal, options.json === true)
  try {
    await withSettings(invocation, async loaded => {
      for await (const finding of findings(loaded, terminal.env)) report.add(finding)
    })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const finding of invalidSettings(error)) report.add(finding)
    report.end()
    return exitCodes.misused
  }
  report.end()
  return report.hasFailed() ? exitCodes.failed : exitCodes.fine
}

/** Calls `use` with the loaded settings. With `--demo`, starts a demo, calls `use` with its settings, and stops the demo. */
async function withSettings(invocation: Invocation, use: (loaded: LoadedConfig) => Promise<void>): Promise<void> {
  const demoOptions = readDemoOptions(invocation)
  const loaded = await loadConfig({ ...sourcesOf(invocation), demo: demoOptions !== undefined })
  if (!demoOptions) return use(loaded)
  // The log goes to stderr, because stdout is for the findings.
  const log = createLog({ ...loaded.config.log, pretty: false }, invocation.terminal.stderr)
  // Without a host, a free port is found even if the server cannot listen at its host. One of the checks reports that.
  const { host } = loaded.config
  const demo = await openDemo({ ...loaded.config, host: undefined }, demoOptions, log).catch((error: unknown) => {
    throw listenError(error)
  })
  try {
    // The checks listen on the port themselves.
    if (demo.reserved) await closeServer(demo.reserved)
    await use({ ...loaded, config: { ...demo.config, host } })
  } finally {
    await demo.close()
  }
}
