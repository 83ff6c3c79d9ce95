// Runs the shipped forward-auth configurations with real gateways and prints the result of each attempt. `--help` lists
// the options.
import { type Attempt, attempts } from './attempts.js'
import { caddy } from './caddy.js'
import type { Gateway, Teardown } from './gateway.js'
import { nginx } from './nginx.js'
import { startSite } from './site.js'
import { traefik } from './traefik.js'

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
  const { name, missing } = gateway
  if (missing !== undefined) {
    print(`\n${name}: SKIPPED, because ${missing}.`)
    if (process.env.CI === 'true') counts.failed += 1
    return
  }
  const version = await gateway.prepare()
  print(`\n| tried | ${name} ${version} |\n|---|---|`)
  for (const attempt of attempts) {
    const expected = gateway.exceptions[attempt.tried] ?? attempt.expected
    const result = await resultOf(gateway, attempt)
    const isExpected = result === expected
    counts[isExpected ? 'passed' : 'failed'] += 1
    print(`| ${attempt.tried} | ${isExpected ? result : `**${result}**`} |`)
  }
}

/** Each attempt runs with its own site. */
async function resultOf(gateway: Gateway, attempt: Attempt): Promise<string> {
  const teardowns: (() => unknown)[] = []
  const t: Teardown = { teardown: fn => void teardowns.push(fn) }
  try {
    return await attempt.run(await startSite(t, gateway, attempt.site))
  } catch (error) {
    return `an error: ${(error as Error).message}`
  } finally {
    for (const teardown of teardowns.reverse()) await teardown()
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
