import { chmod, mkdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { resolveSettings } from '#src/config/load.js'
import { describeProblem } from '#src/config/types/problem.js'
import { goldenFile, testSections } from '../helpers/golden.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { clientSecret, enough, type Situation, sessionSecret } from './given.js'

export interface Case extends Situation {
  /** Symlinks in the working directory, with their targets. */
  readonly links?: Readonly<Record<string, string>>
  /** The modes of files. */
  readonly modes?: Readonly<Record<string, number>>
}

// The secrets in the cases, of which no message may contain a part. Their spelling occurs in no other word.
const secrets = [sessionSecret, clientSecret, 'hunter', 'Zx8cVb5n', 'BEGIN']

/**
 * Declares a test for each section of `messages/NAME.txt`, whose input consists of these lines. The output has the problems and the
 * warnings, and is empty if the settings are accepted without a warning.
 * - `NAME=value`: a variable. `NAME` alone removes a variable of `enough`
 * - `--key value`: a flag, by the key of its setting, or `--config`
 * - `path -> target`: a symlink
 * - `== path`: a file, whose content follows. `<U+200B>` stands for this character
 */
export function testSituations(name: string): void {
  testSections(`test/config/messages/${name}.txt`, (t, _title, input) => messagesOf(t, caseOf(input)))
}

function caseOf(input: string): Case {
  const text = input.replace(/<U\+(\w{4})>/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
  const [options = '', ...files] = text.split(/^== /m)
  const matches = (pattern: RegExp) =>
    Object.fromEntries([...options.matchAll(pattern)].map(([, name, value]) => [name, value]))
  const { config, ...flags } = matches(/^--(\S+) (.*)$/gm)
  return {
    env: matches(/^(\w+)(?:=(.*))?$/gm),
    flags,
    links: matches(/^(\S+) -> (.*)$/gm),
    files: Object.fromEntries(
      files.map(file => [file.split('\n', 1).join(), file.replace(/^.*\n?/, '').replace(/\n$/, '')])
    ),
    ...(config !== undefined && { configFile: config })
  }
}

/** Declares a test for each case, which compares the problems and warnings with a section of `messages/NAME.txt`. */
export function testMessages(name: string, cases: Readonly<Record<string, Case>>): void {
  const isAsWritten = goldenFile(`test/config/messages/${name}.txt`)
  for (const [what, situation] of Object.entries(cases))
    test(`${name}: ${what}`, async t => isAsWritten(t, await messagesOf(t, situation)))
}

/** Returns a line for each problem and warning, in which CWD stands for the working directory. */
async function messagesOf(
  t: ExecutionContext,
  { files, links = {}, modes = {}, env, ...sources }: Case
): Promise<string> {
  const cwd = await tempFolder(t, files)
  for (const [path, target] of Object.entries(links)) {
    await mkdir(dirname(join(cwd, path)), { recursive: true })
    await symlink(target, join(cwd, path))
  }
  for (const [path, mode] of Object.entries(modes)) await chmod(join(cwd, path), mode)
  const { problems, warnings } = await resolveSettings({ ...sources, env: { ...enough, ...env }, cwd })
  const text = [
    ...problems.map(problem => `error: ${describeProblem(problem)}`),
    ...warnings.map(warning => `warning: ${describeProblem(warning)}`)
  ].join('\n')
  for (const secret of secrets) t.false(text.includes(secret), secret)
  return text.replaceAll(cwd, 'CWD')
}
