import { readFileSync } from 'node:fs'

/** Returns the version in package.json, which is two folders above this folder, even in the published package. */
export function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return manifest.version
}
