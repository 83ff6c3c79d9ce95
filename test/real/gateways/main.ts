// Runs the shipped forward-auth configurations with real gateways and checks the result of each attempt. `--help` lists the
// options.
import { type Play, type Report, runSuite } from '../suite.js'
import { attempts, resultOf } from './attempts.js'
import { caddy, type Gateway, nginx, traefik } from './gateways.js'
import { missingProxy, proxies, tryProxy } from './proxies.js'
import { missingWaf, tryWaf } from './waf.js'

const gateways: Readonly<Record<string, Gateway>> = { nginx, caddy, traefik }

const wafs = [1, 2].map(
  (paranoia): Play =>
    async (report, scope) => {
      if (missingWaf === undefined) return tryWaf(report, scope, paranoia)
      report.title('Apache with the OWASP Core Rule Set')
      isMissing(report, missingWaf)
    }
)

const plays: Readonly<Record<string, readonly Play[]>> = {
  ...Object.fromEntries(Object.entries(gateways).map(([name, gateway]) => [name, [tryGateway(gateway)]])),
  ...Object.fromEntries(
    proxies.map(proxy => {
      const play: Play = async (report, scope) => {
        const missing = missingProxy(proxy)
        if (missing === undefined) return tryProxy(proxy, report, scope)
        report.title(proxy.name)
        isMissing(report, missing)
      }
      return [proxy.name, [play]]
    })
  ),
  waf: wafs
}

await runSuite({
  script: 'test:gateways',
  names: Object.keys(plays),
  remark: `A gateway that cannot run here is skipped. With CI=true that is an error.
Caddy and Traefik are built once, into .cache/providers (or PLATFORM_AUTH_PROVIDERS_CACHE).`,
  plays: only => only.flatMap(name => plays[name] ?? [])
})

function tryGateway(gateway: Gateway): Play {
  const { name, version, missing } = gateway
  return async report => {
    const { title, check } = report
    title(`${name} ${version}`)
    if (missing !== undefined) return isMissing(report, missing)
    for (const attempt of attempts) {
      const { result, expected } = await resultOf(gateway, attempt)
      check(`${attempt.tried}: ${expected}`, result === expected, result)
    }
  }
}

function isMissing({ note, check }: Report, missing: string): void {
  note(`SKIPPED, because ${missing}.`)
  if (process.env.CI === 'true') check('the gateway can run here', false, missing)
}
