import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { ExecutionContext } from 'ava'

/**
 * Creates a folder that is removed at the end of the test. `files` are written into it. Each key is a path inside the
 * folder.
 */
export async function tempFolder(
  t: Pick<ExecutionContext, 'teardown'>,
  files: Readonly<Record<string, string | Buffer>> = {}
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'platform-auth-server-'))
  // A process that the test has killed may still create a file for a moment.
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  await writeFiles(folder, files)
  return folder
}

/** Writes files into a folder. Each key is a path inside the folder. */
export async function writeFiles(folder: string, files: Readonly<Record<string, string | Buffer>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }
}
