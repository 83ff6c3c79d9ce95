// Runs the shipped forward-auth configurations with real gateways and checks the result of each attempt. `--help` lists the
// options.
import { type Play, runSuite } from '../suite.js'
import { attempts, resultOf } from './attempts.js'
import { caddy, type Gateway, nginx, traefik } from './gateways.js'

const gateways: Readonly<Record<string, Gateway>> = { nginx, caddy, traefik }

await runSuite({
  script: 'test:gateways',
  names: Object.keys(gateways),
  remark: `A gateway that cannot run here is skipped. With CI=true that is an error.
Caddy and Traefik are built once, into .cache/providers (or PLATFORM_AUTH_PROVIDERS_CACHE).`,
  plays: only => [{ plays: only.map(name => tryGateway(gateways[name] as Gateway)), inParallel: 1 }]
})

function tryGateway(gateway: Gateway): Play {
  const { name, version, missing } = gateway
  return async ({ title, note, check }) => {
    title(`${name} ${version}`)
    if (missing !== undefined) {
      note(`SKIPPED, because ${missing}.`)
      if (process.env.CI === 'true') check('the gateway can run here', false, missing)
      return
    }
    for (const attempt of attempts) {
      const { result, expected } = await resultOf(gateway, attempt)
      check(`${attempt.tried}: ${expected}`, result === expected, result)
    }
  }
}
