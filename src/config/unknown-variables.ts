import { editDistance, nearest } from '../base/nearest.js'
import type { DotEnvLine } from './dot-env.js'
import type { ConfigProblem } from './errors.js'
import { type SettingKey, settingKeys, settingOf } from './settings.js'

// Finds the variables that have one of our prefixes but are not settings. They are probably misspelt.

export interface Variable {
  readonly name: string
  readonly value: string
  readonly source: string
  readonly isInDotEnv: boolean
}

const ourPrefix = /^(PLATFORM|SERVER_SESSION|INTERNAL_TOKEN|PUBLIC_TOKEN)_/i
// Other programs also have variables with these prefixes, so such a variable is never a problem because of its spelling.
const sharedPrefix = /^(REDIS|LOG)_/i

type Problems = Readonly<Record<'problems' | 'warnings', readonly ConfigProblem[]>>

/**
 * True for the variables that Kubernetes sets in every container for a service, such as REDIS_SERVICE_HOST and REDIS_PORT for the
 * service "redis". They are not misspelt settings, and no setting has such a name.
 */
function isServiceLink({ name, value }: Variable): boolean {
  return /_(SERVICE_(HOST|PORT\w*)|PORT_\d+_(TCP|UDP|SCTP)\w*)$/.test(name) || /^(tcp|udp|sctp):\/\//.test(value)
}

const knownVariables = new Map(
  settingKeys.flatMap(key => {
    const { env, tutorialEnv, secret } = settingOf(key)
    const names = tutorialEnv ? [env, tutorialEnv] : [env]
    return (secret ? names.flatMap(name => [name, `${name}_FILE`]) : names).map(name => [name, key] as const)
  })
)
const knownNames = [...knownVariables.keys()]

/** Returns the setting to which a variable belongs, also for the variable that names the file of a secret. */
export function keyOfVariable(name: string): SettingKey | undefined {
  return knownVariables.get(name)
}

/**
 * Returns a problem for each variable that resembles a security setting, and a warning for every other
 * unknown variable. A misspelt security setting is a problem, because everyone could sign in if, for example, the server ignored an
 * access list.
 */
export function unknownVariables(variables: readonly Variable[]): Problems {
  const unknown = variables.filter(
    variable =>
      (ourPrefix.test(variable.name) || sharedPrefix.test(variable.name)) &&
      !knownVariables.has(variable.name) &&
      !isServiceLink(variable)
  )
  return bySeverity(
    unknown.map(({ name, source }) => {
      const error = errorFor(name)
      return { isError: error !== undefined, key: name, source, message: error ?? warningFor(name) }
    })
  )
}

/**
 * Returns a problem for each line of `.env` that is not an assignment and begins with a security setting, and a warning for every
 * other such line. The line may contain a secret, so the message contains only the name of a known variable.
 */
export function unassignedLines(lines: readonly DotEnvLine[]): Problems {
  return bySeverity(
    lines.map(({ line, text }) => {
      const statement = text.replace(/^export\s+/, '').replace(/\s+#[\s\S]*$/, '')
      const [word = ''] = /^\w+/.exec(statement) ?? []
      // The equals sign may be missing between the name and the value.
      const names = [...knownVariables.keys()].filter(
        known => word === known || (known.includes('_') && word.startsWith(known))
      )
      const name = names.reduce((longest, known) => (known.length > longest.length ? known : longest), '')
      // A shell exports variables whose values come from earlier lines, and Docker copies them from its own environment.
      const isError = !/^\w+(?:\s+\w+)*$/.test(statement) && errorFor(word) !== undefined
      const key = name === '' ? '.env' : name
      const source = name === '' ? `line ${line}` : `line ${line} in .env`
      const message =
        name === ''
          ? 'is not an assignment, so it is ignored. Write NAME=value, or begin the line with # for a comment.'
          : 'must be followed directly by an equals sign (=).'
      return { isError, key, source, message }
    })
  )
}

function bySeverity(found: readonly (ConfigProblem & { readonly isError: boolean })[]): Problems {
  const list = (wanted: boolean) =>
    found.filter(({ isError }) => isError === wanted).map(({ isError: _, ...problem }) => problem)
  return { problems: list(true), warnings: list(false) }
}

function errorFor(name: string): string | undefined {
  const protecting = ourPrefix.test(name) ? securityVariable(name) : undefined
  return (
    protecting &&
    `is not a setting of this server, but resembles ${protecting}, a security setting. Rename it to ${protecting}, or remove it.`
  )
}

function warningFor(name: string): string {
  const guess = nearest(withoutPrefix(name), knownNames, known => [withoutPrefix(known)])
  return `is not a setting of this server.${guess ? ` Did you mean ${guess}?` : ''}`
}

const protectsServer = (key: SettingKey) =>
  /^(access|forwardAuth|session)\./.test(key) || settingOf(key).secret === true
const ALLOW = settingOf('access.allow').env
const FILES = settingOf('access.files').env
const MAX_EDITS = 3

/** Returns the variable of a security setting, if the name resembles it more than any other setting. */
function securityVariable(written: string): string | undefined {
  const name = written.toUpperCase()
  if (name.includes('ALLOW')) return ALLOW
  if (name.startsWith('PLATFORM_AUTH_ACCESS')) return name.includes('FILE') ? FILES : ALLOW
  const [best] = [...knownVariables]
    .map(([known, key]) => ({ known, edits: editsBetween(name, known), isSecurity: protectsServer(key) }))
    .filter(({ edits }) => edits <= MAX_EDITS)
    // If a security setting and another setting are equally similar, the name does not stand for the security setting.
    .sort((a, b) => a.edits - b.edits || Number(a.isSecurity) - Number(b.isSecurity))
  return best?.isSecurity ? best.known : undefined
}

/**
 * Counts the edits between two names. Each misspelt letter counts as one edit, and so does each missing or additional word. A
 * wrong prefix does not count.
 */
function editsBetween(name: string, known: string): number {
  const [short, shortKnown] = [withoutPrefix(name), withoutPrefix(known)]
  const edits = editDistance(short, shortKnown)
  const misspelt = edits <= Math.max(1, short.length * 0.4) ? edits : Number.POSITIVE_INFINITY
  const shortened = [
    ...withoutOneWord(known).map(candidate => editDistance(name, candidate)),
    ...withoutOneWord(name).map(candidate => editDistance(candidate, known))
  ].filter(edits => edits <= 1)
  return Math.min(misspelt, ...shortened.map(edits => edits + 1))
}

function withoutOneWord(name: string): string[] {
  const words = name.split('_')
  return words.map((_, index) => words.toSpliced(index, 1).join('_'))
}

/** Removes the prefix, because operators often use the right name with a wrong prefix. */
function withoutPrefix(name: string): string {
  return name.replace(/^(PLATFORM_AUTH|PLATFORM|SERVER)_/i, '')
}
