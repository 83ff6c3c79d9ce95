/**
 * The chain of kept results from the session in a browser's cookie to the newest session. A kept result is the result
 * of a refresh that the coordination store keeps for later requests.
 *
 * A refresh by forward-auth cannot send a cookie to the browser. The browser continues to send its old cookie, so the
 * server must find every later session from that cookie. Each refresh would make the chain longer. To keep it short,
 * the newest result replaces the first one, and the results between them expire soon. This is safe only if no session
 * between them was sent to a browser, because a browser with such a session would need the removed results.
 */
import { type Coordination, CoordinationError } from '../coordination/coordination.js'
import type { KeptRefresh, KeptSession } from './kept-refresh.js'

/** The kept results that one request has followed so far. */
export interface RefreshChain {
  /** Adds the result that the store keeps under `key`. */
  follow(key: string, kept: KeptSession): void
  /**
   * Replaces the first result of the chain by the last one, unless a session between them was sent to a browser.
   * Returns the key of the replaced result, or undefined if nothing was replaced. Await this before sending the
   * response. Otherwise the chain would stay long if this process ended right after the response.
   */
  shorten(): Promise<string | undefined>
  /**
   * Records in the store that this response sends the last session to the browser. Resolves with false if the chain
   * leads to a newer session by now. The caller must then follow the chain again.
   */
  deliver(): Promise<boolean>
  /**
   * Checks that no other run has used the refresh token of the last session. The caller must own the lock of that token.
   * @throws CoordinationError if the chain leads to a newer session by now, or if the store cannot be used now
   */
  ensureCurrent(): Promise<void>
}

/**
 * @param keepMs the time in milliseconds for which replaced results are kept for requests that are following the chain
 */
export function createRefreshChain(
  coordination: Pick<Coordination, 'update' | 'confirm'>,
  keepMs: number
): RefreshChain {
  // The first result of the part of the chain that may be shortened.
  let start: { readonly key: string; kept: KeptSession } | undefined
  // The keys of the results after `start`.
  let between: string[] = []
  // The last result of the chain.
  let last: KeptSession | undefined

  /** True if `kept` holds the same session as `session`. */
  const holdsSession = (kept: KeptRefresh | undefined, session: KeptSession) =>
    kept !== undefined && 'record' in kept && tokenOf(kept) === tokenOf(session)

  /** Like `coordination.update`, but returns undefined instead of throwing a CoordinationError. */
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
      const kept = await update(key, kept => (holdsSession(kept, first) && isUndelivered(kept) ? newest : undefined))
      if (!holdsSession(kept, newest)) return undefined
      // The update has checked that the first session was not sent to a browser. If there are several results in
      // between, their sessions may have been sent meanwhile, so these results are kept.
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
        holdsSession(kept, session) && isUndelivered(kept) ? { ...kept, isUndelivered: false } : undefined
      )
      return kept === undefined || holdsSession(kept, session)
    },
    async ensureCurrent() {
      if (!start || !last) return
      const kept = await coordination.update<KeptRefresh>(start.key, () => undefined)
      if (kept !== undefined && !holdsSession(kept, start.kept)) throw new CoordinationError('pending')
    }
  }
}

function isUndelivered(kept: KeptRefresh): boolean {
  return 'record' in kept && kept.isUndelivered === true
}

function tokenOf({ record }: KeptSession): string | undefined {
  return record.fields.refresh_token
}
