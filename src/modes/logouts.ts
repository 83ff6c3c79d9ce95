/** Which logins have ended: every generation of a session's cookie is refused by the id they share. */
import type { Coordination } from '../coordination/coordination.js'

export function hasEnded(coordination: Coordination, sessionId: string): Promise<boolean> {
  return coordination.isMarked(markOf(sessionId))
}

/** @param maxAgeMs the longest any cookie of this session may still live. */
export function endSession(coordination: Coordination, sessionId: string, maxAgeMs: number): Promise<void> {
  return coordination.mark(markOf(sessionId), maxAgeMs)
}

function markOf(sessionId: string): string {
  return `logout:${sessionId}`
}
