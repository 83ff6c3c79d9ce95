import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import type { Logger } from 'pino'
import { callbackPath, localUrlOf } from '../config/addresses.js'
import type { Sources } from '../config/resolve.js'
import type { Config } from '../config/settings.js'
import type { Invocation } from './command.js'
import { UsageError } from './errors.js'
import { listenError } from './listen-error.js'
import { newSecret } from './new-secret.js'

export interface DemoOptions {
  readonly port: number | undefined
  readonly tokenLifetimeSeconds: number | undefined
}

export interface RunningDemo {
  readonly url: string
  /** The sources with the demo's settings below the flags. */
  readonly sources: Sources
  close(): Promise<void>
}

/** What was said of a demo on the command line, or undefined when none is wanted. */
export function readDemoOptions({ options }: Invocation): DemoOptions | undefined {
  const { demo, demoPort, demoTokenLifetime } = options
  const port = wholeNumber('--demo-port', demoPort, 0, 65_535)
  const tokenLifetimeSeconds = wholeNumber('--demo-token-lifetime', demoTokenLifetime, 1, 86_400)
  if (demo === true) return { port, tokenLifetimeSeconds }
  if (port !== undefined) throw new UsageError('--demo-port does nothing without --demo.')
  if (tokenLifetimeSeconds !== undefined) throw new UsageError('--demo-token-lifetime does nothing without --demo.')
  return undefined
}

function wholeNumber(flag: string, text: unknown, minimum: number, maximum: number): number | undefined {
  if (text === undefined) return undefined
  const number = /^\d+$/.test(String(text)) ? Number(text) : Number.NaN
  if (number >= minimum && number <= maximum) return number
  throw new UsageError(`${flag} must be a whole number from ${minimum} to ${maximum}.`)
}

/** Starts the demo identity provider for the server that `config` describes. */
export async function openDemo(
  sources: Sources,
  { port: wanted, host }: Config,
  options: DemoOptions,
  log: Logger
): Promise<RunningDemo> {
  const port = wanted === 0 ? await freePort() : wanted
  const flags = { ...sources.flags, port: String(port) }
  const callbackUrl = String(flags['platform.callbackUrl'] ?? callbackUrlAt(port, host))
  // The demo is code that an ordinary start has no use for.
  const { startDemo } = await import('../demo/index.js')
  const { port: demoPort, tokenLifetimeSeconds } = options
  const demo = await startDemo({
    callbackUrl,
    log,
    ...(demoPort !== undefined && { port: demoPort }),
    ...(tokenLifetimeSeconds !== undefined && { tokenLifetimeSeconds })
  }).catch((error: unknown) => {
    throw listenError(error, 'demo')
  })
  const { issuer, clientId, clientSecret } = demo
  return {
    url: issuer,
    sources: { ...sources, flags, ...demoSettings({ issuer, clientId, clientSecret, callbackUrl }) },
    close: () => demo.close()
  }
}

/** The settings that point the server at the demo, whatever the environment and files say of the real provider. */
export function demoSettings(
  client = {
    issuer: 'http://127.0.0.1',
    clientId: 'demo',
    clientSecret: 'demo',
    callbackUrl: `http://localhost${callbackPath}`
  }
): Pick<Sources, 'overrides' | 'overridesOrigin'> {
  return {
    overridesOrigin: 'demo',
    overrides: {
      session: { secret: newSecret() },
      platform: {
        ...client,
        authorizationEndpoint: null,
        tokenEndpoint: null,
        userinfoEndpoint: null,
        revocationEndpoint: null,
        endSessionEndpoint: null,
        clientAuthentication: null
      }
    }
  }
}

/** At the address that the server will announce, so that a login ends under the name under which it began. */
function callbackUrlAt(port: number, host: string | undefined): string {
  const url = `${localUrlOf({ port, host })}${callbackPath}`
  if (URL.canParse(url)) return url
  throw new UsageError(`No browser can open the host ${host}; choose another with --host, or leave it out.`)
}

// The callback URL has to be known before the server listens.
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}
