/**
 * Whether a refusal is the end of a login. A provider that refuses a refresh token says that it is spent, not by whom:
 * while replicas cannot agree, another one may have renewed the same session a moment ago, and its browser is served.
 */
import type { Coordination, Run } from '../coordination/coordination.js'

export interface Doubts {
  /** @param key names the refresh token that was refused in `run` */
  isBelieved(key: string, run: Run): Promise<boolean>
}

// How long it is known that a token was refused before; a browser that stays away longer than this is doubted anew.
const REMEMBERED_MS = 3_600_000

/**
 * @param keepMs how long results are kept: by then a browser has its new cookie, or Redis has come back and knows better;
 *   a token that is refused after that as well is dead.
 */
export function createDoubts(coordination: Coordination, keepMs: number): Doubts {
  return {
    async isBelieved(key, run) {
      if (!run.isAlone()) return true
      const [before, lately] = [`refused:${key}`, `refused lately:${key}`]
      if (await coordination.isMarked(before)) return !(await coordination.isMarked(lately))
      await Promise.all([coordination.mark(before, REMEMBERED_MS), coordination.mark(lately, keepMs)])
      return false
    }
  }
}
