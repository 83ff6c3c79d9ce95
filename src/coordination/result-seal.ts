import { randomBytes } from 'node:crypto'
import type { Sealer } from '../sealing/keyring.js'
import { StoredDataError } from './redis-errors.js'
import { RUN_LENGTH, WITH_TOKENS, WITHOUT_TOKENS } from './redis-scripts.js'

/** A result on its way to Redis. */
export interface SealedResult {
  /** The id of the run that made it. */
  readonly run: string
  readonly hasTokens: boolean
  readonly value: unknown
  /** An intermediate result; the run was not finished when it was stored. */
  readonly isCheckpoint?: boolean
}

export interface ResultSeal {
  seal(key: string, result: SealedResult): string
  /** @throws StoredDataError when this deployment did not seal `text` for this key, or with a secret unknown here */
  open<T>(key: string, text: string): { readonly value: T; readonly isCheckpoint: boolean }
}

// The run's id and the sign for tokens are readable, because the scripts compare them. The seal authenticates them.
const HEAD_LENGTH = RUN_LENGTH + 1

export function createResultSeal(sealer: Sealer): ResultSeal {
  const contextOf = (key: string, head: string) => `${key} ${head}`
  return {
    seal(key, { run, hasTokens, value, isCheckpoint = false }) {
      const head = run + (hasTokens ? WITH_TOKENS : WITHOUT_TOKENS)
      return head + sealer.seal(Buffer.from(JSON.stringify({ value, isCheckpoint })), contextOf(key, head))
    },
    open(key, text) {
      const plaintext = sealer.open(text.slice(HEAD_LENGTH), contextOf(key, text.slice(0, HEAD_LENGTH)))
      if (!plaintext) throw new StoredDataError()
      return JSON.parse(plaintext.toString())
    }
  }
}

/** The id of the run that made a stored result. */
export function runOf(text: string): string {
  return text.slice(0, RUN_LENGTH)
}

/** 132 random bits, as long as the scripts expect an id to be. */
export function newRunId(): string {
  return randomBytes(RUN_LENGTH).toString('base64url').slice(0, RUN_LENGTH)
}
