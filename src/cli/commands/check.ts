import { coloursFor } from '../../base/colours.js'
import { closeServer } from '../../base/listener.js'
import { type LoadedConfig, loadConfig } from '../../config/load.js'
import { ConfigError } from '../../config/types/problem.js'
import { openDemo } from '../../demo/open.js'
import { createLog } from '../../server/log.js'
import type { Finding } from '../check/findings.js'
import { type NamedFinding, runChecks } from '../check/index.js'
import { invalidSettings } from '../check/local-settings.js'
import { type Command, type Invocation, readDemoOptions, sourcesOf } from '../terminal/command.js'
import { exitCodes, listenError } from '../terminal/expected-errors.js'
import { columnsOf, counted, type Terminal, wrap } from '../terminal/terminal.js'

/** Writes each finding immediately, and a summary at the end. With `--json`, writes only one JSON object at the end. */
export const check: Command = async function check(invocation) {
  const { terminal, options } = invocation
  const { stdout } = terminal
  const findings: NamedFinding[] = []
  let code: number = exitCodes.fine
  function add(finding: NamedFinding) {
    findings.push(finding)
    if (finding.status === 'failed' && code === exitCodes.fine) code = exitCodes.failed
    if (!options.json) stdout.write(`${lineOf(finding, terminal)}\n`)
  }
  try {
    await withSettings(invocation, async loaded => {
      for await (const finding of runChecks(loaded, terminal.env)) add(finding)
    })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    code = exitCodes.misused
    for (const finding of invalidSettings(error)) add({ check: 'settings', ...finding })
  }
  if (options.json) stdout.write(`${JSON.stringify({ ok: code === exitCodes.fine, findings }, undefined, 2)}\n`)
  else stdout.write(`\n${summaryOf(findings, terminal)}\n`)
  return code
}

/** Calls `use` with the loaded settings. With `--demo`, starts a demo, calls `use` with its settings, and stops the demo. */
async function withSettings(invocation: Invocation, use: (loaded: LoadedConfig) => Promise<void>): Promise<void> {
  const demoOptions = readDemoOptions(invocation)
  const loaded = await loadConfig({ ...sourcesOf(invocation), demo: demoOptions !== undefined })
  if (!demoOptions) return use(loaded)
  // The log goes to stderr, because stdout is for the findings.
  const log = createLog({ ...loaded.config.log, format: 'json' }, invocation.terminal.stderr)
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

function lineOf({ check, status, message, next }: NamedFinding, terminal: Terminal): string {
  const { green, yellow, red } = coloursFor(terminal)
  const colour = { ok: green, warning: yellow, failed: red }[status]
  const text = wrap(
    `${message}${next === undefined ? '' : ` Next: ${next}`}`,
    columnsOf(terminal.stdout),
    statusWidth + checkWidth
  )
  return `${colour(status.padEnd(statusWidth))}${check.padEnd(checkWidth)}${text}`
}

function summaryOf(findings: readonly NamedFinding[], terminal: Terminal): string {
  const { green, yellow, red, bold } = coloursFor(terminal)
  const count = (wanted: Finding['status']) => findings.filter(({ status }) => status === wanted).length
  const warnings = counted(count('warning'), 'warning')
  const counts = `${count('ok')} ok, ${warnings}, ${count('failed')} failed.`
  const [colour, advice] =
    count('failed') > 0
      ? [red, 'Fix the failed findings, then run check again.']
      : count('warning') > 0
        ? [yellow, 'The server can run, but read the warnings first.']
        : [green, 'The server can run with these settings.']
  return wrap(`${counts} ${advice}`, columnsOf(terminal.stdout)).replace(counts, bold(colour(counts)))
}
