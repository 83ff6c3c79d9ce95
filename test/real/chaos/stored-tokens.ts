// Reads from Redis's append-only file which refresh tokens the processes have stored. The file has every write of Redis, so
// it proves whether a process that was killed had stored the tokens of its last response.
import { closeSync, openSync, readdirSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { createKeyring } from '#src/cookie/keyring.js'
import type { SessionRecord } from '#src/cookie/record.js'
import type { Entry } from '#src/sessions/transitions.js'

const FOLDER = 'appendonlydir'
// In the file, a command is a list of texts, each with its length in front. A session and its entry are stored together
// (`src/sessions/redis/redis-cells.ts`).
const WRITES = /session:([\w-]+)\r\n\$1\r\ne\r\n\$\d+\r\n([\w.]+)\r\n\$1\r\nr\r\n\$\d+\r\n([\w.]+)\r\n/g
/** The longest write is one encrypted session. */
const OVERLAP = 64 * 1024

/**
 * @param folder the working folder of Redis
 * @param secret the session secret of the processes
 */
export function readStoredTokens(folder: string, secret: string) {
  const sealer = createKeyring([secret]).sealer('stored session')
  const tokens = new Set<string>()
  const offsets = new Map<string, number>()

  function readNew(file: string): void {
    const offset = offsets.get(file) ?? 0
    const bytes = readFrom(file, Math.max(0, offset - OVERLAP))
    for (const [, id = '', sealedEntry = '', sealedRecord = ''] of bytes.toString('latin1').matchAll(WRITES)) {
      const entry = sealer.open(sealedEntry, `session:${id}`)
      const { rev } = entry ? (JSON.parse(entry.toString()) as Entry) : { rev: undefined }
      const plaintext = sealer.open(sealedRecord, `session:${id} ${rev}`)
      if (plaintext) tokens.add((JSON.parse(plaintext.toString()) as SessionRecord).fields.refresh_token)
    }
    offsets.set(file, Math.max(0, offset - OVERLAP) + bytes.length)
  }

  return {
    /** Returns true if a session with this refresh token has been stored. */
    has(refreshToken: string): boolean {
      if (tokens.has(refreshToken)) return true
      for (const name of readdirSync(join(folder, FOLDER))) {
        if (name.endsWith('.aof')) readNew(join(folder, FOLDER, name))
      }
      return tokens.has(refreshToken)
    }
  }
}

function readFrom(file: string, offset: number): Buffer {
  const descriptor = openSync(file, 'r')
  try {
    const parts: Buffer[] = []
    for (let position = offset; ; ) {
      const part = Buffer.alloc(1024 * 1024)
      const length = readSync(descriptor, part, 0, part.length, position)
      if (length === 0) return Buffer.concat(parts)
      parts.push(part.subarray(0, length))
      position += length
    }
  } finally {
    closeSync(descriptor)
  }
}
