import { readFileSync } from 'node:fs'
import type { Config } from '../config/settings.js'

export interface RedisTls {
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
}

/**
 * Returns the options of TLS for ioredis, which copies them for each connection. The properties read the files, so a renewed
 * certificate is used without a restart. If a file cannot be read, its last content is used.
 */
export function tlsOptions({ caFile, certFile, keyFile }: Partial<Config['redisTls']>): RedisTls {
  const contents = new Map<string, string>()

  function read(path: string | undefined): string | undefined {
    if (path === undefined) return undefined
    try {
      contents.set(path, readFileSync(path, 'utf8'))
    } catch (error) {
      if (!contents.has(path)) throw error
    }
    return contents.get(path)
  }

  // If a file is missing now, this is an error of the start and not of the first connection.
  for (const path of [caFile, certFile, keyFile]) read(path)
  return {
    get ca() {
      return read(caFile)
    },
    get cert() {
      return read(certFile)
    },
    get key() {
      return read(keyFile)
    }
  }
}
