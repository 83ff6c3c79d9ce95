import { readFileSync } from 'node:fs'

/** Returns the version in package.json. The file is two folders above this one, also in the published package. */
export function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return manifest.version
}
