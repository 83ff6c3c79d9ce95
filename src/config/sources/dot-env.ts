import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { errorCode } from '../../base/error-code.js'
import { isDangling, readTextFile, whyUnreadableAt } from '../../base/text-file.js'
import type { ConfigProblem } from '../types/problem.js'
import type { PrivateFile } from './layer.js'

// Reads `.env` with Node's parser, and finds the values that Docker, Compose and systemd read differently. Operators use the same
// file with `docker run --env-file`, in a Compose file, or as `EnvironmentFile` of systemd.

export type Environment = Readonly<Record<string, string | undefined>>

export interface DotEnvLine {
  readonly line: number
  /** The content of the line, which may be a secret. */
  readonly text: string
}

/** Returns the path of `.env` in the working directory. The file may not exist. */
export function dotEnvFile(cwd: string): PrivateFile {
  return { key: '.env', source: 'working directory', path: join(cwd, '.env') }
}

/**
 * Reads the file. `isReadDifferently` is true if other programs read the value of a variable differently, and `otherLines` are those that
 * are neither assignments nor comments.
 */
export async function readDotEnv(cwd: string) {
  const { path, ...file } = dotEnvFile(cwd)
  const problems: ConfigProblem[] = []
  const content = await readTextFile(path).catch((error: unknown) => {
    // A folder with the name `.env` is often a Python environment, so it is ignored.
    const isAbsent = ['ENOENT', 'ENOTDIR', 'EISDIR'].includes(errorCode(error) ?? '') && !isDangling(path)
    if (!isAbsent) problems.push({ ...file, message: `cannot be read, because ${whyUnreadableAt(path, error)}.` })
    return ''
  })
  // For parseEnv, only a line feed ends a line. Without this conversion, if all lines ended in carriage returns, the first variable
  // would contain all other variables. A file that was joined from several has a byte order mark in any line.
  const { text, otherLines } = onlyAssignments(content.replace(/\r\n?/g, '\n').replace(/(?<![^\n])\uFEFF+/g, ''))
  const lines = new Map([...text.matchAll(/^\s*(?:export\s+)?(\w+)\s*=(.*)$/gm)].map(([, name, raw]) => [name, raw]))
  const isReadDifferently = (name: string) => isAmbiguous(lines.get(name) ?? '')
  return { fromDotEnv: parseEnv(text), isReadDifferently, otherLines, problems }
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

/**
 * True for a value that ends at a "#" without a space before it, or in white space, for Node only; that contains the name of a
 * variable, which Compose replaces, or an escape sequence; or that is in backticks, or continues after its quotation mark.
 * @param raw the line after the equals sign
 */
function isAmbiguous(raw: string): boolean {
  const value = raw.trim()
  const [, mark, inner = '', rest = ''] = /^(["'`])(.*?)\1(.*)$/.exec(value) ?? []
  if (mark !== undefined)
    return mark === '`' || /^\s*[^\s#]/.test(rest) || (mark === '"' && /\\[^n]|\$[A-Za-z_{]/.test(inner))
  // Without a closing quotation mark, the value continues in the next line.
  if (/^["'`]/.test(value)) return false
  const [beforeComment = ''] = value.split(/\s#/, 1)
  return /\S#|\$[A-Za-z_{]/.test(beforeComment) || (beforeComment === value && raw !== raw.trimEnd() && value !== '')
}
