/** The TLS options of the connections to Redis. */

import { readFileSync } from 'node:fs'
import type { Config } from '../../config/settings.js'

/**
 * Returns the TLS options for ioredis. The certificate of Redis must be for `serverName`, or for the host of each connection if it
 * is undefined. ioredis copies the options for each connection, and the files are read again for each
 * copy. So a renewed certificate is used without a restart. If a file can no longer be read, its last content is used.
 */
export function tlsOptions({ caFile, certFile, keyFile, serverName }: Partial<Config['redis']>) {
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

  // Read all files now, so that with a missing file, the start fails and not the first connection.
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
    },
    ...(serverName !== undefined && { servername: serverName })
  }
}
