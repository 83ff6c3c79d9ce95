import type { ExecutionContext } from 'ava'
import { createHostileIdp, type HostileIdp, type HostileIdpOptions } from '../../helpers/hostile-idp/index.js'
import { environmentFor, environmentWithEndpoints } from '../../helpers/program.js'
import { run, type ShellOptions } from '../shell.js'

export const callbackUrl = 'http://localhost:8080/api/auth/callback'

/** A provider that receives no request. */
export const someProvider = {
  clientId: 'a-client-id-about-as-long-as-those-of-the-platform',
  clientSecret: 'secret',
  authorizationEndpoint: 'https://a.example/authorize',
  tokenEndpoint: 'https://a.example/token',
  userinfoEndpoint: 'https://a.example/userinfo',
  revocationEndpoint: 'https://a.example/revoke',
  endSessionEndpoint: 'https://a.example/logout'
}

const MAX_RUNS = 2
let runs = 0
const waiting: (() => void)[] = []

/**
 * Runs a check when fewer than two others are running. AVA starts all tests of a file in parallel. Without this limit,
 * a check whose time limit is 2 s would spend this time waiting for the checks of other tests.
 */
export async function fewAtOnce<T>(run: () => Promise<T>): Promise<T> {
  if (runs === MAX_RUNS) await new Promise<void>(resolve => waiting.push(resolve))
  else runs++
  try {
    return await run()
  } finally {
    const next = waiting.shift()
    if (next) next()
    else runs--
  }
}

export async function check(t: ExecutionContext, args: readonly string[], options: ShellOptions) {
  const { code, output, errors } = await fewAtOnce(() => run(t, ['check', ...args], options))
  // The last line counts the findings.
  const [findings = '', summary = ''] = output.trimEnd().split('\n\n')
  const lines = findings.split('\n').map(line => line.replace(/ {2,}/g, ' '))
  /** The line of this finding, with single spaces. Undefined if there is none. */
  const line = (check: string) => {
    const about = lines.filter(line => line.split(' ')[1] === check)
    if (about.length > 1) throw new Error(about.join('\n'))
    return about[0]
  }
  return { code, output, errors, lines, summary, line }
}

/** The settings for a server that logs in at `idp`. Port 0 lets tests run in parallel. */
export function settingsFor(idp: HostileIdp): Record<string, string> {
  return environmentWithEndpoints(idp, callbackUrl)
}

/** The same settings, but with an issuer instead of the endpoints. */
export function discovering(idp: HostileIdp): Record<string, string> {
  return environmentFor(idp, callbackUrl)
}

export interface Situation extends HostileIdpOptions {
  /** Makes the provider fail. */
  readonly prepare?: (idp: HostileIdp) => void
  /** Changes settings of the provider. */
  readonly provider?: (idp: HostileIdp) => Partial<HostileIdp['settings']>
  /** Changes members of the discovery document, which the settings then name instead of the endpoints. */
  readonly discovery?: (idp: HostileIdp) => Record<string, unknown>
  readonly env?: (idp: HostileIdp) => Record<string, string>
  readonly args?: readonly string[]
}

/** Runs check with a new hostile provider. */
export async function checkAt(t: ExecutionContext, situation: Situation = {}) {
  const { prepare = () => {}, provider, discovery, env = () => ({}), args = [], ...options } = situation
  const idp = await createHostileIdp(t, { callbackUrl, ...options })
  Object.assign(idp.settings, provider?.(idp))
  if (discovery) idp.discovery = document => ({ ...document, ...discovery(idp) })
  prepare(idp)
  const settings = { ...(discovery ? discovering(idp) : settingsFor(idp)), ...env(idp) }
  return { ...(await check(t, args, { env: settings })), idp }
}
