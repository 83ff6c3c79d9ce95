/**
 * Logout marks. A logout mark records that a session was logged out. It contains the session id, which a refresh does
 * not change, so it makes the cookies from before and after a refresh invalid.
 */
import type { Coordination } from '../coordination/coordination.js'

export function isLoggedOut(coordination: Coordination, sessionId: string): Promise<boolean> {
  return coordination.isMarked(keyOf(sessionId))
}

/**
 * Looks for the logout mark only in the memory of this process. Each logout is broadcast to the other replicas, so a
 * replica that is connected to the shared store knows of it at once.
 */
export function isLoggedOutHere(coordination: Coordination, sessionId: string): boolean {
  return coordination.isMarkedHere(keyOf(sessionId))
}

/** @param maxAgeMs the lifetime of a session cookie, after which no cookie of this session is valid */
export function markLoggedOut(coordination: Coordination, sessionId: string, maxAgeMs: number): Promise<void> {
  return coordination.mark(keyOf(sessionId), maxAgeMs, 'everyone')
}

function keyOf(sessionId: string): string {
  return `logout:${sessionId}`
}
