// Runs the shipped forward-auth configurations with real gateways and prints the result of each attempt. `--help` lists
// the options.
import { createCounts, endsWithHelp, print } from '../report.js'
import { attempts, resultOf } from './attempts.js'
import { caddy, type Gateway, nginx, traefik } from './gateways.js'

const gateways: Readonly<Record<string, Gateway>> = { nginx, caddy, traefik }

const help = `Usage: npm run test:gateways [-- name …]

Names: ${Object.keys(gateways).join(', ')}; all of them by default.
A result in bold differs from the expected one, and the exit code is then 1.
A gateway that cannot run here is skipped. With CI=true that is an error.

Caddy and Traefik are built once, into .cache/providers (or PLATFORM_AUTH_PROVIDERS_CACHE).
`

const names = process.argv.slice(2)
const unknown = names.filter(name => name !== '--help' && !(name in gateways))
const counts = createCounts()

if (!endsWithHelp(help, names, unknown)) {
  for (const name of names.length > 0 ? names : Object.keys(gateways)) {
    await tryGateway(gateways[name] as Gateway).catch((error: Error) => {
      counts.add(false)
      print(`\n${name}: ${error.stack}`)
    })
  }
  counts.print()
}

async function tryGateway(gateway: Gateway): Promise<void> {
  const { name, version, missing } = gateway
  if (missing !== undefined) {
    print(`\n${name}: SKIPPED, because ${missing}.`)
    if (process.env.CI === 'true') counts.add(false)
    return
  }
  print(`\n| tried | ${name} ${version} |\n|---|---|`)
  for (const attempt of attempts) {
    const { result, expected } = await resultOf(gateway, attempt)
    const isExpected = result === expected
    counts.add(isExpected)
    print(`| ${attempt.tried} | ${isExpected ? result : `**${result}**`} |`)
  }
}
