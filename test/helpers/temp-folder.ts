import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { ExecutionContext } from 'ava'

/**
 * Creates a folder that is removed at the end of the test. `files` are written into it. Each key is a path inside the
 * folder. Thousands of tests need one, and synchronous calls take a third of the CPU time.
 */
export async function tempFolder(
  t: Pick<ExecutionContext, 'teardown'>,
  files: Readonly<Record<string, string | Buffer>> = {}
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'platform-auth-server-'))
  // A process that the test has killed may still create a file for a moment.
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  await writeFiles(folder, files)
  return folder
}

/** Writes files into a folder. Each key is a path inside the folder. */
export async function writeFiles(folder: string, files: Readonly<Record<string, string | Buffer>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
}
