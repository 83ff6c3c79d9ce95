/**
 * The kept results that lead from a browser's cookie to its newest session.
 *
 * A refresh of forward-auth reaches no browser, so the browser's old cookie must lead to every later session. Without this
 * file, each such refresh would leave one more kept result between the two. Instead the first result is replaced by the
 * newest one, and the results between them expire soon. That is safe as long as no browser was sent one of the sessions in
 * between, since only its cookie would need them.
 */
import { type Coordination, CoordinationError } from '../coordination/coordination.js'
import type { SessionRecord } from '../session/record.js'

/** The kept result of a refresh: plain JSON. Times are milliseconds since the epoch. */
export type KeptRefresh =
  | { readonly outcome: 'refreshed'; readonly record: SessionRecord; readonly isUndelivered?: boolean }
  | {
      readonly outcome: 'partial'
      readonly record: SessionRecord
      readonly isUndelivered?: boolean
      readonly retryAt: number
    }
  | { readonly outcome: 'failed'; readonly retryAt: number; readonly suspectedSince?: number }
  /** Until `finalAt`, an earlier owner of the lock may still deliver a better result. */
  | { readonly outcome: 'rejected'; readonly finalAt: number }

/** A kept result that holds a session. `isUndelivered` says that no browser has been sent this session. */
export type KeptSession = Extract<KeptRefresh, { readonly record: SessionRecord }>

/** The results that one request has followed so far. */
export interface RefreshChain {
  /** The next result has been followed: that of `key`, which is `kept`. */
  follow(key: string, kept: KeptSession): void
  /**
   * Replaces the first result of the chain by the last one, unless a browser was sent a session in between. Returns the key
   * that leads to the last session afterwards. Awaited before the response, because a process that ends right after it must
   * not leave a longer chain.
   */
  shorten(): Promise<string | undefined>
  /**
   * Says that this response sends the last session to the browser. False: the chain leads to a newer session by now, so it
   * must be followed again.
   */
  deliver(): Promise<boolean>
  /**
   * To be awaited by the owner of the lock of the next refresh.
   * @throws CoordinationError if the chain leads to a newer session by now, so that the refresh token has been used
   */
  ensureCurrent(): Promise<void>
}

/** @param keepMs how long results are kept for requests that follow the chain at this moment */
export function createRefreshChain(
  coordination: Pick<Coordination, 'update' | 'confirm'>,
  keepMs: number
): RefreshChain {
  let anchor: { readonly key: string; kept: KeptSession } | undefined
  let passed: string[] = []
  let last: KeptSession | undefined

  const leadsTo = (kept: KeptRefresh | undefined, session: KeptSession) =>
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
      if (anchor && last?.isUndelivered && key !== anchor.key) passed.push(key)
      else {
        anchor = { key, kept }
        passed = []
      }
      last = kept
    },
    async shorten() {
      if (!anchor || !last || passed.length === 0) return undefined
      const { key, kept: first } = anchor
      const newest: KeptSession = { ...last, record: { ...last.record, supersedes: key } }
      const kept = await update(key, kept => (leadsTo(kept, first) && isUndelivered(kept) ? newest : undefined))
      if (!leadsTo(kept, newest)) return undefined
      // With more than one, a browser may have been sent a session in between since this request followed the chain.
      if (passed.length === 1) for (const key of passed) coordination.confirm(key, keepMs)
      anchor = { key, kept: newest }
      passed = []
      return key
    },
    async deliver() {
      if (!anchor || !last?.isUndelivered) return true
      const session = last
      const key = passed.at(-1) ?? anchor.key
      const kept = await update(key, kept =>
        leadsTo(kept, session) && isUndelivered(kept) ? { ...kept, isUndelivered: false } : undefined
      )
      return kept === undefined || leadsTo(kept, session)
    },
    async ensureCurrent() {
      if (!anchor || !last) return
      const kept = await update(anchor.key, () => undefined)
      if (kept !== undefined && !leadsTo(kept, anchor.kept)) throw new CoordinationError('pending')
    }
  }
}

function isUndelivered(kept: KeptRefresh): boolean {
  return 'record' in kept && kept.isUndelivered === true
}

function tokenOf({ record }: KeptSession): string | undefined {
  return record.fields.refresh_token
}
