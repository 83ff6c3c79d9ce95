import { chmod, mkdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { resolveSettings } from '#src/config/load.js'
import { describeProblem } from '#src/config/types/problem.js'
import { goldenFile } from '../helpers/golden.js'
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
 * Declares a test for each case, which compares the problems and warnings with a section of `messages/NAME.txt`. An empty section
 * stands for settings that are accepted without a warning.
 */
export function testMessages(name: string, cases: Readonly<Record<string, Case>>): void {
  const isAsWritten = goldenFile(`test/config/messages/${name}.txt`)
  for (const [what, situation] of Object.entries(cases)) {
    test(`${name}: ${what}`, async t => {
      const text = (await messagesOf(t, situation)).join('\n')
      for (const secret of secrets) t.false(text.includes(secret), secret)
      isAsWritten(t, text)
    })
  }
}

/** Returns a line for each problem and warning, in which CWD stands for the working directory. */
export async function messagesOf(
  t: ExecutionContext,
  { files, links = {}, modes = {}, env, ...sources }: Case
): Promise<string[]> {
  const cwd = await tempFolder(t, files)
  for (const [path, target] of Object.entries(links)) {
    await mkdir(dirname(join(cwd, path)), { recursive: true })
    await symlink(target, join(cwd, path))
  }
  for (const [path, mode] of Object.entries(modes)) await chmod(join(cwd, path), mode)
  const { problems, warnings } = await resolveSettings({ ...sources, env: { ...enough, ...env }, cwd })
  const lines = [
    ...problems.map(problem => `error: ${describeProblem(problem)}`),
    ...warnings.map(warning => `warning: ${describeProblem(warning)}`)
  ]
  return lines.map(line => line.replaceAll(cwd, 'CWD'))
}
