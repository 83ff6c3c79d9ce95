import type { ConfigProblem } from '../types/problem.js'
import { isSecurity, type Row } from '../types/setting.js'
import type { DotEnvLine } from './dot-env.js'
import type { SettingsFinding } from './layer.js'

// The names of our variables, and the variables and lines of `.env` that resemble them. A variable that protects the server must
// not be missing because of its spelling. Secrets may stand in the place of names, so only text of known names is shown.

export interface Variable {
  readonly name: string
  readonly value: string
  /** The end of its source. */
  readonly place: ' in .env' | ''
}

const ourPrefix = /^(PLATFORM|SERVER_SESSION|INTERNAL_TOKEN|PUBLIC_TOKEN)_/i
// Other programs also have variables with these prefixes, so such a variable is never a problem because of its spelling.
const sharedPrefix = /^(REDIS|LOG)_/i

/**
 * True for the variables that Kubernetes sets in every container for a service, such as REDIS_SERVICE_HOST and REDIS_PORT for the
 * service "redis". They are not misspelt settings, and no setting has such a name.
 */
function isServiceLink({ name, value }: Variable): boolean {
  return /_(SERVICE_(HOST|PORT\w*)|PORT_\d+_(TCP|UDP|SCTP)\w*)$/.test(name) || /^(tcp|udp|sctp):\/\//.test(value)
}

/** Returns functions that know the names of all variables. */
export function createNames(rows: readonly Row[]) {
  const known = new Map(
    rows.flatMap(row => {
      const names = row.tutorialEnv ? [row.env, row.tutorialEnv] : [row.env]
      return (row.secret ? names.flatMap(name => [name, `${name}_FILE`]) : names).map(name => [name, row] as const)
    })
  )
  const knownNames = [...known.keys()]

  /** Returns the known name that a name resembles most, if there is one. */
  function nearest(name: string): { readonly known: string; readonly isSecurity: boolean } | undefined {
    const surely = rows.find(({ resembledBy }) => resembledBy?.test(name))
    if (surely) return { known: surely.env, isSecurity: true }
    const [best] = [...known]
      .map(([known, row]) => ({ known, edits: editsBetween(name, known), isSecurity: isSecurity(row) }))
      .filter(({ edits }) => edits <= MAX_EDITS)
      // If a security setting and another setting are equally similar, the name does not stand for the security setting.
      .sort((a, b) => a.edits - b.edits || Number(a.isSecurity) - Number(b.isSecurity))
    return best
  }

  /** Returns the longest beginning that a name has in common with a known name, up to a word. */
  function shown(name: string): string {
    const words = name.toUpperCase().split('_')
    const prefixes = words.map((_, index) => words.slice(0, words.length - index).join('_'))
    const prefix = prefixes.find(prefix => knownNames.some(known => `${known}_`.startsWith(`${prefix}_`)))
    return prefix === undefined ? '…' : prefix.length === name.length ? name : `${prefix}_…`
  }

  return {
    /** Returns the setting to which a variable belongs, also for the variable that names the file of a secret. */
    rowOf: (name: string): Row | undefined => known.get(name),

    /**
     * Finds what is wrong with the name of a variable. One that resembles the variable of a security setting is a problem. Any other
     * unknown one with our prefix gets a warning.
     */
    ofVariable(variable: Variable): SettingsFinding | undefined {
      const { name, place } = variable
      if (known.has(name)) return undefined
      const respelt = place === '' ? undefined : respelling(name)
      if (respelt) return respelt
      if (!(ourPrefix.test(name) || sharedPrefix.test(name)) || isServiceLink(variable)) return undefined
      const best = nearest(name.toUpperCase())
      const found = { key: shown(name), source: `variable${place}` }
      const text = 'is not a setting of this server'
      if (!best?.isSecurity || !ourPrefix.test(name))
        return { ...found, message: `${text}.${best ? ` Did you mean ${best.known}?` : ''}`, isWarning: true }
      const message = `${text}, but resembles ${best.known}, a security setting. Rename it to ${best.known}, or remove it.`
      return { ...found, message }
    },

    /**
     * Finds what is wrong with a line of `.env` that is not an assignment. One that begins with a known name, or whose name has other
     * characters besides, is a problem, and every other one gets a warning.
     */
    ofLine({ line, text }: DotEnvLine): SettingsFinding | undefined {
      const statement = text.replace(/^export\s+/, '').replace(/\s+#[\s\S]*$/, '')
      // A shell exports variables whose values come from earlier lines, and Docker copies them from its own environment.
      if (/^\w+(?:\s+\w+)*$/.test(statement) && statement.split(/\s+/).every(word => known.has(word))) return undefined
      const source = `line ${line} in .env`
      const respelt = text.includes('=') ? respelling(text.slice(0, text.indexOf('=')), source) : undefined
      if (respelt) return respelt
      const [word = ''] = /^\w+/.exec(statement) ?? []
      // The equals sign may be missing between the name and the value.
      const [name] = knownNames
        .filter(known => word === known || (known.includes('_') && word.startsWith(known)))
        .sort((a, b) => b.length - a.length)
      if (name !== undefined) return { key: name, source, message: 'must be followed directly by an equals sign (=).' }
      const message =
        'is not an assignment, so it is ignored. Write NAME=value, or begin the line with # for a comment.'
      return { key: '.env', source: `line ${line}`, message, isWarning: true }
    }
  }

  /** Returns a problem for a name that is a known one with other characters besides, such as invisible ones. */
  function respelling(name: string, source = 'variable in .env'): ConfigProblem | undefined {
    // A variable of another program, such as appPORT, which may share the file.
    if (/^\w+$/.test(name)) return undefined
    const key = name.replace(/[^A-Z0-9_]/g, '')
    const message =
      'is not read, because its name contains other characters, which may be invisible. Write the line again, without them.'
    return known.has(key) ? { key, source, message } : undefined
  }
}

const MAX_EDITS = 3

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
  return name.replace(/^(PLATFORM_AUTH|PLATFORM|SERVER)_/, '')
}

/** Counts the letters to insert, delete or change (Levenshtein). Returns infinity if the lengths differ by more than `MAX_EDITS`. */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > MAX_EDITS) return Number.POSITIVE_INFINITY
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (const [row, letter] of [...a].entries()) {
    const line = [row + 1]
    for (const [column, other] of [...b].entries()) {
      const [left = 0, above = 0, diagonal = 0] = [line[column], previous[column + 1], previous[column]]
      line.push(Math.min(left + 1, above + 1, diagonal + (letter === other ? 0 : 1)))
    }
    previous = line
  }
  return previous.at(-1) ?? 0
}
