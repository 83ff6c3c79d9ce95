/**
 * Keeps short the chain of kept results that leads from a browser's cookie to its newest session.
 *
 * A refresh of forward-auth reaches no browser, so the browser's old cookie must lead to every later session. Without this
 * file, each such refresh would add one more kept result to the chain. Instead the first result is replaced by the newest
 * one, and the results between them expire soon. This is safe as long as no browser was sent one of the sessions in between,
 * because only the cookie of such a session would need them.
 */
import { type Coordination, CoordinationError } from '../coordination/coordination.js'
import type { KeptRefresh, KeptSession } from './kept-refresh.js'

/** The results that one request has followed so far. */
export interface RefreshChain {
  /** Adds the next result, which is kept under `key`. */
  follow(key: string, kept: KeptSession): void
  /**
   * Replaces the first result of the chain by the last one, unless a browser was sent a session in between. Returns the key
   * that leads to the last session afterwards, or undefined if nothing was replaced. The caller awaits this before it
   * responds. Otherwise a process that ends right after the response would leave a longer chain.
   */
  shorten(): Promise<string | undefined>
  /**
   * Stores that this response sends the last session to the browser. Resolves with false if the chain leads to a newer
   * session by now. The caller must then follow the chain again.
   */
  deliver(): Promise<boolean>
  /**
   * Checks that no other run has used the refresh token of the last session. The caller must own the lock of that token.
   * @throws CoordinationError if the chain leads to a newer session by now, or if the store cannot be used now
   */
  ensureCurrent(): Promise<void>
}

/** @param keepMs how long results are kept for requests that follow the chain at this moment */
export function createRefreshChain(
  coordination: Pick<Coordination, 'update' | 'confirm'>,
  keepMs: number
): RefreshChain {
  // The first result of the part of the chain that may be shortened, the keys of the results after it, and the last result.
  let start: { readonly key: string; kept: KeptSession } | undefined
  let between: string[] = []
  let last: KeptSession | undefined

  /** True if `kept` holds this session. */
  const isFor = (kept: KeptRefresh | undefined, session: KeptSession) =>
    kept !== undefined && 'record' in kept && tokenOf(kept) === tokenOf(session)

  /** Returns undefined if there is no such result, or if the store cannot be used now. */
  function update(key: string, change: (kept: KeptRefresh) => KeptRefresh | undefined) {
    return coordination.update<KeptRefresh>(key, change).catch((error: unknown) => {
      if (error instanceof CoordinationError) return undefined
      throw error
    })
  }

  return {
    follow(key, kept) {
      if (start && last?.isUndelivered && key !== start.key) between.push(key)
      else {
        start = { key, kept }
        between = []
      }
      last = kept
    },
    async shorten() {
      if (!start || !last || between.length === 0) return undefined
      const { key, kept: first } = start
      const newest: KeptSession = { ...last, record: { ...last.record, supersedes: key } }
      const kept = await update(key, kept => (isFor(kept, first) && isUndelivered(kept) ? newest : undefined))
      if (!isFor(kept, newest)) return undefined
      // If there are several results in between, a browser may have been sent one of their sessions since this request
      // followed the chain.
      if (between.length === 1) for (const key of between) coordination.confirm(key, keepMs)
      start = { key, kept: newest }
      between = []
      return key
    },
    async deliver() {
      if (!start || !last?.isUndelivered) return true
      const session = last
      const key = between.at(-1) ?? start.key
      const kept = await update(key, kept =>
        isFor(kept, session) && isUndelivered(kept) ? { ...kept, isUndelivered: false } : undefined
      )
      return kept === undefined || isFor(kept, session)
    },
    async ensureCurrent() {
      if (!start || !last) return
      const kept = await coordination.update<KeptRefresh>(start.key, () => undefined)
      if (kept !== undefined && !isFor(kept, start.kept)) throw new CoordinationError('pending')
    }
  }
}

function isUndelivered(kept: KeptRefresh): boolean {
  return 'record' in kept && kept.isUndelivered === true
}

function tokenOf({ record }: KeptSession): string | undefined {
  return record.fields.refresh_token
}
