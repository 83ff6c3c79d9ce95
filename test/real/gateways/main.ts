// Runs the shipped forward-auth configurations with real gateways and prints the result of each attempt. `--help` lists
// the options.
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

if (names.includes('--help')) process.stdout.write(help)
else if (unknown.length > 0) {
  process.stderr.write(`Unknown: ${unknown.join(', ')}\n\n${help}`)
  process.exitCode = 2
} else {
  const counts = { passed: 0, failed: 0 }
  for (const name of names.length > 0 ? names : Object.keys(gateways)) {
    await tryGateway(gateways[name] as Gateway, counts).catch((error: Error) => {
      counts.failed += 1
      print(`\n${name}: ${error.stack}`)
    })
  }
  print(`\n${counts.passed} passed, ${counts.failed} failed`)
  if (counts.failed > 0) process.exitCode = 1
}

async function tryGateway(gateway: Gateway, counts: { passed: number; failed: number }): Promise<void> {
  const { name, version, missing } = gateway
  if (missing !== undefined) {
    print(`\n${name}: SKIPPED, because ${missing}.`)
    if (process.env.CI === 'true') counts.failed += 1
    return
  }
  print(`\n| tried | ${name} ${version} |\n|---|---|`)
  for (const attempt of attempts) {
    const { result, expected } = await resultOf(gateway, attempt)
    const isExpected = result === expected
    counts[isExpected ? 'passed' : 'failed'] += 1
    print(`| ${attempt.tried} | ${isExpected ? result : `**${result}**`} |`)
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
