import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { errorCode } from '../base/error-code.js'
import type { ConfigProblem } from './errors.js'
import { readTextFile, type SecretFile, whyUnreadable } from './files.js'

// Reads `.env` with Node's parser, and finds the values that Docker, Compose and systemd read differently. Operators use the same
// file with `docker run --env-file`, in a Compose file, or as `EnvironmentFile` of systemd.

export type Environment = Readonly<Record<string, string | undefined>>

interface DotEnv {
  readonly fromDotEnv: Environment
  /** Returns the reason why other programs read the value of a variable differently. It continues "because …". */
  whyOdd(name: string): string | undefined
  /** The lines that are neither assignments nor comments. */
  readonly otherLines: readonly DotEnvLine[]
  readonly problems: readonly ConfigProblem[]
}

export interface DotEnvLine {
  readonly line: number
  /** The content of the line, which may be a secret. */
  readonly text: string
}

/** Returns the path of `.env` in the working directory. The file may not exist. */
export function dotEnvFile(cwd: string): SecretFile {
  return { key: '.env', source: 'working directory', path: join(cwd, '.env') }
}

export async function readDotEnv(cwd: string): Promise<DotEnv> {
  const { path, ...file } = dotEnvFile(cwd)
  try {
    // For parseEnv, only a line feed ends a line. Without this conversion, if all lines ended in carriage returns, the
    // first variable would contain all other variables.
    const { text, otherLines } = onlyAssignments((await readTextFile(path)).replace(/\r\n?/g, '\n'))
    const lines = new Map([...text.matchAll(/^\s*(?:export\s+)?(\w+)\s*=(.*)$/gm)].map(([, name, raw]) => [name, raw]))
    const whyOdd = (name: string) => whyReadDifferently(lines.get(name) ?? '')
    return { fromDotEnv: parseEnv(text), whyOdd, otherLines, problems: [] }
  } catch (error) {
    const nothing = { fromDotEnv: {}, whyOdd: () => undefined, otherLines: [] }
    // A folder with the name `.env` is often a Python environment, so it is ignored.
    if (['ENOENT', 'ENOTDIR', 'EISDIR'].includes(errorCode(error) ?? '')) return { ...nothing, problems: [] }
    return { ...nothing, problems: [{ ...file, message: `cannot be read, because ${whyUnreadable(error)}.` }] }
  }
}

// A value in quotation marks can have several lines, whatever the name of the variable is. Only a line feed ends a line, so `^`, `$`
// and `.` cannot be used: for them, U+2028 ends a line, too.
const STATEMENT = /(?<![^\n])[^=\n#]+=[^\S\n]*(["'`])[\s\S]*?\1[^\n]*|(?<![^\n])[^\n]+/g
const ASSIGNMENT = /^\s*(?:export\s+)?[\w.-]+\s*=/
const BLANK_OR_COMMENT = /^\s*(?:$|#)/

/**
 * Empties the other lines, because the parser of Node 20 takes such a line for a part of the next variable's name, even if it
 * contains only white space (nodejs/node issues 56686 and 56775).
 */
function onlyAssignments(text: string): { readonly text: string; readonly otherLines: readonly DotEnvLine[] } {
  const otherLines: DotEnvLine[] = []
  const assignments = text.replace(STATEMENT, (statement: string, _quotationMark, offset: number) => {
    if (ASSIGNMENT.test(statement)) return statement
    if (!BLANK_OR_COMMENT.test(statement)) {
      otherLines.push({ line: text.slice(0, offset).split('\n').length, text: statement.trim() })
    }
    return ''
  })
  return { text: assignments, otherLines }
}

const inSingleQuotes = 'write the value in single quotation marks.'
const reasons = {
  hash: `a value without quotation marks ends at "#" here, but not for Docker and systemd. If "#" belongs to the value, ${inSingleQuotes}`,
  rest: 'text follows the closing quotation mark. Remove this text or the quotation marks.',
  backtick: `only Node treats "\`" as a quotation mark. Instead, ${inSingleQuotes}`,
  escape: `other programs treat "\\" in double quotation marks as the beginning of an escape sequence. Instead, ${inSingleQuotes}`,
  variable: `Compose replaces "$" and the name after it with the value of a variable. If "$" belongs to the value, ${inSingleQuotes}`,
  space: 'white space at the end of a value is removed. Remove it from the file too.'
}

/**
 * @param raw the line after the equals sign. A comment after white space is no reason, because Node and Compose agree on it and
 *   its author meant a comment
 */
function whyReadDifferently(raw: string): string | undefined {
  const value = raw.trim()
  const [quotationMark = ''] = /^["'`]/.exec(value) ?? []
  if (quotationMark === '') {
    const [beforeComment = ''] = value.split(/\s#/, 1)
    if (/\S#/.test(beforeComment)) return reasons.hash
    if (/\$[A-Za-z_{]/.test(beforeComment)) return reasons.variable
    return beforeComment === value && raw !== raw.trimEnd() && value !== '' ? reasons.space : undefined
  }
  const end = value.indexOf(quotationMark, 1)
  // Without a closing quotation mark, the value continues in the next line.
  if (end === -1) return undefined
  if (/^\s*[^\s#]/.test(value.slice(end + 1))) return reasons.rest
  if (quotationMark === '`') return reasons.backtick
  const inner = value.slice(1, end)
  if (quotationMark === '"' && /\\[^n]/.test(inner)) return reasons.escape
  if (quotationMark === '"' && /\$[A-Za-z_{]/.test(inner)) return reasons.variable
  return undefined
}
