import { randomBytes } from 'node:crypto'
import type { Sealer } from '../sealing/keyring.js'
import { StoredDataError } from './redis-errors.js'
import { REPLACEMENT, RUN_LENGTH, VERSION_LENGTH, WITH_TOKENS, WITHOUT_TOKENS } from './redis-scripts.js'

/** A result before its encryption. The encrypted text is stored in Redis. */
export interface SealedResult {
  /** The id of the run (one execution of the work) that created the result. */
  readonly run: string
  /** True if the value contains tokens that are stored nowhere else. */
  readonly hasTokens: boolean
  /**
   * The number of times that the result of this key has been replaced, 0 by default. Only results with tokens are
   * replaced.
   */
  readonly version?: number
  readonly value: unknown
  /** True for an intermediate result that was stored before the run finished. */
  readonly isCheckpoint?: boolean
}

export interface ResultSeal {
  seal(key: string, result: SealedResult): string
  /** @throws StoredDataError if `text` was encrypted for another key or with an unknown secret, or was changed */
  open<T>(key: string, text: string): { readonly value: T; readonly isCheckpoint: boolean }
}

// A stored text begins with the run id, one character for the kind of the result, and the version of a replacement.
// This part is authenticated but not encrypted, because the Lua scripts in Redis compare it.
const HEAD_LENGTH = RUN_LENGTH + 1
const REPLACEMENT_HEAD_LENGTH = HEAD_LENGTH + VERSION_LENGTH

export function createResultSeal(sealer: Sealer): ResultSeal {
  const contextOf = (key: string, head: string) => `${key} ${head}`
  return {
    seal(key, { run, hasTokens, version = 0, value, isCheckpoint = false }) {
      const sign = hasTokens ? WITH_TOKENS : WITHOUT_TOKENS
      const head = run + (version === 0 ? sign : REPLACEMENT + String(version).padStart(VERSION_LENGTH, '0'))
      return head + sealer.seal(Buffer.from(JSON.stringify({ value, isCheckpoint })), contextOf(key, head))
    },
    open(key, text) {
      const headLength = isReplacement(text) ? REPLACEMENT_HEAD_LENGTH : HEAD_LENGTH
      const plaintext = sealer.open(text.slice(headLength), contextOf(key, text.slice(0, headLength)))
      if (!plaintext) throw new StoredDataError()
      return JSON.parse(plaintext.toString())
    }
  }
}

/** Returns the id of the run that created a stored result. */
export function runOf(text: string): string {
  return text.slice(0, RUN_LENGTH)
}

/** Creates a random id of 132 bits, with the length that the scripts expect. */
export function newRunId(): string {
  return randomBytes(RUN_LENGTH).toString('base64url').slice(0, RUN_LENGTH)
}

/** Returns the number of times that the stored result of a key has been replaced. */
export function versionOf(text: string): number {
  return isReplacement(text) ? Number(text.slice(HEAD_LENGTH, REPLACEMENT_HEAD_LENGTH)) : 0
}

function isReplacement(text: string): boolean {
  return text[RUN_LENGTH] === REPLACEMENT
}
