// Runs the server with real identity providers and prints a table of what works with each. `--help` lists the options.
import { inScope, type Teardown } from '../../helpers/scope.js'
import { run } from '../programs.js'
import { endsWithHelp, print } from '../report.js'
import { dex } from './dex.js'
import { django } from './django.js'
import { hydra } from './hydra.js'
import { keycloak } from './keycloak.js'
import type { ProviderKind } from './provider.js'
import { type Mode, scenarios } from './scenarios.js'

const kinds: Readonly<Record<string, ProviderKind>> = { keycloak, dex, hydra, django }
const modes: readonly Mode[] = ['single', 'dual']

const help = `Usage: npm run test:providers [-- [name …] [--verbose]]

Names: ${Object.keys(kinds).join(', ')}; all of them by default.
--verbose prints every line of check, and the log lines of the scenarios that did not work.
A result in bold differs from the expected one, and the exit code is then 1.

Providers are built or downloaded once, into .cache/providers (or PLATFORM_AUTH_PROVIDERS_CACHE).
`

interface Row {
  readonly scenario: string
  readonly results: Readonly<Record<Mode, string>>
}

const args = process.argv.slice(2)
const names = args.filter(arg => !arg.startsWith('--'))
const isVerbose = args.includes('--verbose')
const unknown = [...names.filter(name => !(name in kinds)), ...args.filter(arg => /^--(?!verbose$|help$)/.test(arg))]

if (!endsWithHelp(help, args, unknown)) {
  for (const name of names.length > 0 ? names : Object.keys(kinds)) {
    const kind = kinds[name] as ProviderKind
    await inScope(t => tryProvider(t, kind)).catch((error: Error) => {
      process.exitCode = 1
      print(`\n${kind.name} ${kind.version}: ${error.stack}`)
    })
  }
}

async function tryProvider(t: Teardown, kind: ProviderKind): Promise<void> {
  const title = `${kind.name} ${kind.version}`
  if (!(await isInstalled(kind.needs))) {
    print(`\n${title}: SKIPPED, because ${kind.needs} is not installed.`)
    return
  }
  print(`\n${title}`)
  const provider = await kind.start(t)
  const rows: Row[] = []
  for (const [scenario, play] of Object.entries(scenarios)) {
    const results = { single: '', dual: '' }
    for (const mode of modes) {
      const { result, details } = await play(provider, mode)
      const expected = expectedOf(kind, scenario, mode)
      const isExpected = expected instanceof RegExp ? expected.test(result) : expected === result
      results[mode] = isExpected ? result : `**${result}**`
      if (!isExpected) process.exitCode = 1
      if (isVerbose) for (const line of details) print(`  ${scenario}, ${mode}: ${line}`)
    }
    rows.push({ scenario, results })
  }
  print(`\n| ${title} | single | dual |\n|---|---|---|`)
  for (const { scenario, results } of rows) print(`| ${scenario} | ${results.single} | ${results.dual} |`)
}

function expectedOf({ exceptions }: ProviderKind, scenario: string, mode: Mode): string | RegExp {
  const exception = exceptions[`${scenario}, ${mode}`] ?? exceptions[scenario]
  if (exception !== undefined) return exception
  if (/^check with a wrong/.test(scenario)) return /^failed: .*(client|login)/
  return scenario.startsWith('check') ? 'ok' : (exceptions[mode] ?? 'works')
}

async function isInstalled(command: string): Promise<boolean> {
  return run({ command: 'which', args: [command] }).then(
    () => true,
    () => false
  )
}
