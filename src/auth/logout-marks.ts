/** Logout marks. A logout marks the session id, which makes every cookie of that session invalid, before and after a refresh. */
import type { Coordination } from '../coordination/coordination.js'

export function isLoggedOut(coordination: Coordination, sessionId: string): Promise<boolean> {
  return coordination.isMarked(keyOf(sessionId))
}

/**
 * Looks for the mark in the memory of this process only. Each logout is broadcast to the replicas, so a connected
 * replica knows it at once.
 */
export function isLoggedOutHere(coordination: Coordination, sessionId: string): boolean {
  return coordination.isMarkedHere(keyOf(sessionId))
}

/** @param maxAgeMs the longest time that any cookie of this session can still be valid */
export function markLoggedOut(coordination: Coordination, sessionId: string, maxAgeMs: number): Promise<void> {
  return coordination.mark(keyOf(sessionId), maxAgeMs, 'everyone')
}

function keyOf(sessionId: string): string {
  return `logout:${sessionId}`
}
