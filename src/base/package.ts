/** The folder, the version and the executable of this package. The paths fit `dist/base` as well as `dist/bundle`. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The folder of this package, which is two folders above this folder, even in the published package. */
export const packageFolder = fileURLToPath(new URL('../..', import.meta.url))

/** Returns the version in package.json. */
export function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return manifest.version
}

/** The path of the executable. */
export const programPath = fileURLToPath(new URL('../../bin/platform-auth-server.js', import.meta.url))
