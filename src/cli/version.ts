import { readFileSync } from 'node:fs'

/** The version in package.json, which also a packed package has two folders above. */
export function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return manifest.version
}
