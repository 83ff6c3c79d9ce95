// Holds back the logins of several tabs, so that they overlap as in a browser that restores its tabs.
import { setTimeout } from 'node:timers/promises'
import { createDeferred } from './deferred.js'

const LATENCY_MS = 150

/**
 * Creates the function `mayPass` of a deployment. After each `restart`, no response of a login arrives before `tabs` of them have begun,
 * and no callback before all of them have set their cookie. Requests and responses also take up to 150 ms longer.
 */
export function createHeldLogins(tabs: number) {
  let gates: Readonly<Record<string, () => Promise<void>>> = {}
  return {
    restart() {
      gates = { '/api/auth/login': createGate(tabs), '/api/auth/callback': createGate(tabs) }
    },
    async mayPass(path: string) {
      await gates[path.split('?', 1)[0] ?? '']?.()
      await setTimeout(Math.random() * LATENCY_MS)
    }
  }
}

/** Holds requests back until `count` of them have arrived, and lets all later ones through. */
function createGate(count: number) {
  const [opened, open] = createDeferred()
  let arrived = 0
  return () => {
    if (++arrived === count) open()
    return opened
  }
}
