import { ConfigError } from '../../config/errors.js'
import { type LoadedConfig, loadConfig } from '../../config/load.js'
import { createLog } from '../../log.js'
import { openDemo } from '../../open-demo.js'
import { coloursFor } from '../../support/colours.js'
import { closeServer } from '../../support/listener.js'
import type { Status } from '../check/findings.js'
import { findings, type NamedFinding } from '../check/index.js'
import { invalidSettings } from '../check/settings.js'
import { type Command, type Invocation, readDemoOptions, sourcesOf } from '../command.js'
import { exitCodes, listenError } from '../errors.js'
import { columnsOf, type Terminal, wrap } from '../terminal.js'

export const check: Command = async function check(invocation) {
  const { terminal, options } = invocation
  const report = createReport(terminal, options.json === true)
  try {
    await withSettings(invocation, async loaded => {
      for await (const finding of findings(loaded, terminal.env)) report.add(finding)
    })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const finding of invalidSettings(error)) report.add({ check: 'settings', ...finding })
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
  // The demo ignores the setting host, so that it also starts if the server cannot listen on this host. One of the
  // checks reports that problem.
  const { host } = loaded.config
  const demo = await openDemo({ ...loaded.config, host: undefined }, demoOptions, log).catch((error: unknown) => {
    throw listenError(error)
  })
  try {
    // The port is released, because one of the checks listens on it.
    if (demo.reserved) await closeServer(demo.reserved)
    await use({ ...loaded, config: { ...demo.config, host } })
  } finally {
    await demo.close()
  }
}

const statusWidth = 'warning'.length + 2
const checkWidth = 'endpoints'.length + 2

/** Writes each finding immediately, and a summary at the end. With `isJson`, writes only one JSON object at the end. */
function createReport(terminal: Pick<Terminal, 'stdout' | 'env'>, isJson: boolean) {
  const { stdout } = terminal
  const findings: NamedFinding[] = []
  const { green, yellow, red, bold } = coloursFor(terminal)
  const colourOf: Readonly<Record<Status, (text: string) => string>> = { ok: green, warning: yellow, failed: red }
  const count = (wanted: Status) => findings.filter(({ status }) => status === wanted).length
  const hasFailed = () => count('failed') > 0

  function textOf({ check, status, message, next }: NamedFinding): string {
    const text = `${message}${next === undefined ? '' : ` Next: ${next}`}`
    const indent = statusWidth + checkWidth
    return `${colourOf[status](status.padEnd(statusWidth))}${check.padEnd(checkWidth)}${wrap(text, columnsOf(stdout), indent)}`
  }

  function summary(): string {
    const counts = `${count('ok')} ok, ${plural(count('warning'), 'warning')}, ${count('failed')} failed.`
    const [colour, advice] = hasFailed()
      ? [red, 'Fix the failed findings, then run check again.']
      : count('warning') > 0
        ? [yellow, 'The server can run, but read the warnings first.']
        : [green, 'The server can run with these settings.']
    return wrap(`${counts} ${advice}`, columnsOf(stdout)).replace(counts, bold(colour(counts)))
  }

  return {
    hasFailed,
    add(finding: NamedFinding) {
      findings.push(finding)
      if (!isJson) stdout.write(`${textOf(finding)}\n`)
    },
    end() {
      if (isJson) stdout.write(`${JSON.stringify({ ok: !hasFailed(), findings }, undefined, 2)}\n`)
      else stdout.write(`\n${summary()}\n`)
    }
  }
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
