import test, { type ExecutionContext } from 'ava'
import type { Finding } from '#src/cli/check/findings.js'
import { defaultCallbackUrl } from '../../helpers/config.js'
import { createHostileIdp, type HostileIdp, type HostileIdpOptions } from '../../helpers/hostile-idp/index.js'
import { carries } from '../../helpers/messages.js'
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
  const allOf = (check: string) => lines.filter(line => line.split(' ')[1] === check).map(findingOf)
  /** The finding of this check. Undefined if there is none. */
  const found = (check: string): Finding | undefined => {
    const [finding, ...more] = allOf(check)
    if (more.length > 0) throw new Error(lines.join('\n'))
    return finding
  }
  return { code, output, errors, lines, summary, allOf, found }
}

function findingOf(line: string): Finding {
  const [, status = '', message = '', next] = /^(\w+) \w+ (.*?)(?: Next: (.*))?$/.exec(line) ?? []
  return { status: status as Finding['status'], message, ...(next !== undefined && { next }) }
}

/**
 * Asserts the status of a finding, and the words that its message and its advice contain. For `failed 401 → platform.clientId`,
 * the message must contain 401, and the advice the name of the setting.
 */
export function isFinding(t: ExecutionContext, finding: Finding | undefined, expected: string): void {
  const [about = '', advice] = expected.split(' → ')
  const [status = '', ...words] = about.split(' ')
  t.is(finding?.status as string, status, finding?.message)
  if (words.length > 0) carries(t, finding?.message, words.join(' '))
  if (advice !== undefined) carries(t, finding?.next, advice)
  if (status === 'ok') t.is(finding?.next, undefined)
}

/** Asserts all findings of a check, as `isFinding` does. */
export function areFindings(t: ExecutionContext, findings: readonly Finding[], expected: readonly string[]): void {
  t.is(findings.length, expected.length, JSON.stringify(findings))
  for (const [index, words] of expected.entries()) isFinding(t, findings[index], words)
}

/** Tests the finding of this check in each situation. `ISSUER` is the issuer of the provider. */
export function testFindings(
  check: string,
  table: Readonly<Record<string, readonly [situation: Situation, finding: string]>>
): void {
  for (const [what, [situation, expected]] of Object.entries(table)) {
    test(`check reports the right ${check} finding for ${what}`, async t => {
      const { found, idp } = await checkAt(t, situation)
      isFinding(t, found(check), expected.replace('ISSUER', idp.issuer))
    })
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
