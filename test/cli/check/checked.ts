import test, { type ExecutionContext } from 'ava'
import type { Finding } from '#src/cli/check/findings.js'
import { defaultCallbackUrl } from '../../helpers/config.js'
import { goldenFile } from '../../helpers/golden.js'
import { createHostileIdp, type HostileIdp, type HostileIdpOptions } from '../../helpers/hostile-idp/index.js'
import { environmentFor, environmentWithEndpoints } from '../../helpers/program.js'
import { run, type ShellOptions } from '../shell.js'

/** The endpoints of the provider that a check uses. */
export const usedEndpoints = ['authorize', 'token', 'userinfo', 'revoke'] as const

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
  const [text = '', summary = ''] = output.trimEnd().split('\n\n')
  const lines = text.split('\n').map(line => line.replace(/ {2,}/g, ' '))
  /** The lines of this check. */
  const allOf = (check: string) => lines.filter(line => line.split(' ')[1] === check)
  return { code, output, errors, lines, summary, allOf }
}

const compare = goldenFile('test/cli/check/check.txt')

/**
 * Compares lines of `check`, or findings, with the section of check.txt. Ports of the system and paths differ from run to run.
 * @param replacements other strings that differ, and their names in the file
 */
export function isGolden(
  t: ExecutionContext,
  findings: readonly (string | Finding)[],
  replacements: Readonly<Record<string, string>> = {}
): void {
  let text = findings.length === 0 ? '(nothing)' : findings.map(lineOf).join('\n')
  for (const [found, name] of Object.entries(replacements)) text = text.replaceAll(found, name)
  compare(
    t,
    text
      .replace(/(127\.0\.0\.1|localhost|[Pp]ort):? ?([1-6]\d{4})\b/g, (all, _host, port) => all.replace(port, 'N'))
      .replace(/\S+index\.html/g, 'PAGE')
      .replace(/\S*platform-auth-server-\w{6}\//g, '')
      // On a busy machine, a response may arrive late.
      .replace(/clock is \d+ s behind/g, 'clock agrees with')
  )
}

/** Writes a finding as a command does, without its columns. */
export function lineOf(finding: string | Finding): string {
  if (typeof finding === 'string') return finding
  const { status, message, next } = finding
  return `${status} ${message}${next === undefined ? '' : ` Next: ${next}`}`
}

/** Tests the lines of this check in each situation. */
export function testFindings(check: string, table: Readonly<Record<string, Situation>>): void {
  for (const [what, situation] of Object.entries(table)) {
    test(`${check}: ${what}`, async t => isGolden(t, (await checkAt(t, situation)).allOf(check)))
  }
}

export interface Situation extends HostileIdpOptions, Pick<ShellOptions, 'files'> {
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
  const { prepare = () => {}, provider, discovery, env = () => ({}), args = [], files, ...options } = situation
  const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl, ...options })
  Object.assign(idp.settings, provider?.(idp))
  if (discovery) idp.discovery = document => ({ ...document, ...discovery(idp) })
  prepare(idp)
  const settingsFor = discovery ? environmentFor : environmentWithEndpoints
  const settings = { ...settingsFor(idp, defaultCallbackUrl), ...env(idp) }
  return { ...(await check(t, args, { env: settings, ...(files && { files }) })), idp }
}
