// Runs the server with real identity providers and checks what works with each. `--help` lists the options.

import { isInstalled } from '../programs.js'
import { type Play, runSuite } from '../suite.js'
import { dex } from './dex.js'
import { django } from './django.js'
import { hydra } from './hydra.js'
import { keycloak } from './keycloak.js'
import type { ProviderKind } from './provider.js'
import { type Mode, scenarios } from './scenarios.js'

const kinds: Readonly<Record<string, ProviderKind>> = { keycloak, dex, hydra, django }
const modes: readonly Mode[] = ['single', 'dual']

await runSuite({
  script: 'test:providers',
  names: Object.keys(kinds),
  remark: 'Providers are built or downloaded once, into .cache/providers (or PLATFORM_AUTH_PROVIDERS_CACHE).',
  plays: only => only.map(name => tryProvider(kinds[name] as ProviderKind))
})

function tryProvider(kind: ProviderKind): Play {
  return async ({ title, note, check }, scope) => {
    title(`${kind.name} ${kind.version}`)
    if (!isInstalled(kind.needs)) {
      note(`SKIPPED, because ${kind.needs} is not installed.`)
      return
    }
    const provider = await kind.start(scope)
    for (const [scenario, play] of Object.entries(scenarios)) {
      for (const mode of modes) {
        const { result, details } = await play(provider, mode)
        const expected = expectedOf(kind, scenario, mode)
        const isExpected = expected instanceof RegExp ? expected.test(result) : expected === result
        check(`${scenario}, ${mode}: ${isExpected ? result : expected}`, isExpected, result)
        if (!isExpected) details.forEach(note)
      }
    }
  }
}

function expectedOf({ exceptions }: ProviderKind, scenario: string, mode: Mode): string | RegExp {
  const exception = exceptions[`${scenario}, ${mode}`] ?? exceptions[scenario]
  if (exception !== undefined) return exception
  if (/^check with a wrong/.test(scenario)) return /^failed: .*(client|login)/
  return scenario.startsWith('check') ? 'ok' : (exceptions[mode] ?? 'works')
}
