import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { ExecutionContext } from 'ava'

/** A folder of this test's own with the files given, gone when the test ends. */
export async function folder(t: ExecutionContext, files: Readonly<Record<string, string>> = {}): Promise<string> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'platform-auth-server-')))
  t.teardown(() => rm(path, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(path, name)), { recursive: true })
    await writeFile(join(path, name), text)
  }
  return path
}
