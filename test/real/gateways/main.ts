// Runs the shipped forward-auth configurations with real gateways and checks the result of each attempt. `--help` lists the
// options.
import { type Play, runSuite } from '../suite.js'
import { attempts, resultOf } from './attempts.js'
import { caddy, type Gateway, nginx, traefik } from './gateways.js'
import { missingProxy, proxies, tryProxy } from './proxies.js'
import { missingWaf, tryWaf } from './waf.js'

/** Runs a play, unless a program is missing. */
function where(missing: string | undefined, name: string, play: Play): Play {
  if (missing === undefined) return play
  return async ({ title, note, check }) => {
    title(name)
    note(`SKIPPED, because ${missing}.`)
    if (process.env.CI === 'true') check('the gateway can run here', false, missing)
  }
}

function playOf(gateway: Gateway): Play {
  return where(gateway.missing, gateway.name, async ({ title, check }) => {
    title(`${gateway.name} ${gateway.version}`)
    for (const attempt of attempts) {
      const { result, expected } = await resultOf(gateway, attempt)
      check(`${attempt.tried}: ${expected}`, result === expected, result)
    }
  })
}

const plays: Readonly<Record<string, readonly Play[]>> = {
  nginx: [playOf(nginx)],
  caddy: [playOf(caddy)],
  traefik: [playOf(traefik)],
  ...Object.fromEntries(
    proxies.map(proxy => {
      const play: Play = (report, scope) => tryProxy(proxy, report, scope)
      return [proxy.name, [where(missingProxy(proxy), proxy.name, play)]]
    })
  ),
  waf: [1, 2].map(paranoia =>
    where(missingWaf, 'Apache with the OWASP Core Rule Set', (report, scope) => tryWaf(report, scope, paranoia))
  )
}

await runSuite({
  script: 'test:gateways',
  names: Object.keys(plays),
  remark: `A gateway that cannot run here is skipped. With CI=true that is an error.
Caddy and Traefik are built once, into .cache/providers (or PLATFORM_AUTH_PROVIDERS_CACHE).`,
  plays: only => only.flatMap(name => plays[name] ?? [])
})
