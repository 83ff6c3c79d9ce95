// How the provider responds during a storm.
import { setTimeout as pause } from 'node:timers/promises'
import { createRandom } from '../../helpers/random.js'
import { type Behaviour, fine, late, unspent, withholding } from './calls.js'

/** Shares of calls, from 0 to 1. The remaining calls get their response immediately. */
interface Spell {
  /** Responses that arrive late but within the time limit. */
  readonly slow: number
  readonly unspent: number
  /** Responses after the time limit. */
  readonly late: number
  readonly withheld: number
}

const spells: readonly Spell[] = [
  { slow: 0.1, unspent: 0, late: 0, withheld: 0 },
  { slow: 0.3, unspent: 0.1, late: 0, withheld: 0 },
  { slow: 0.2, unspent: 0.2, late: 0.02, withheld: 0.01 },
  { slow: 0, unspent: 0.5, late: 0, withheld: 0 },
  { slow: 0.9, unspent: 0.05, late: 0, withheld: 0 },
  { slow: 0.1, unspent: 0.1, late: 0.05, withheld: 0.02 },
  { slow: 0, unspent: 1, late: 0, withheld: 0 }
]
const MIN_MS = 300
const MAX_MS = 1300

/** Random failures. Spells of about a second follow each other, and each spell has its own shares of failures. */
export function createWeather(seed: number): Behaviour {
  const began = performance.now()
  const order = createRandom(seed)
  const draw = createRandom(seed + 1_000_000)
  let spell = pick(spells, 0)
  let until = 0

  return call => {
    while (until <= performance.now() - began) {
      until += MIN_MS + order() * (MAX_MS - MIN_MS)
      spell = pick(spells, order())
    }
    let lot = draw()
    for (const [share, behaviours] of [
      [spell.withheld, withholding],
      [spell.late, late],
      [spell.unspent, unspent],
      [spell.slow, fine]
    ] as const) {
      if (lot < share) return pick(Object.values<Behaviour>(behaviours), draw())(call)
      lot -= share
    }
    return fine.answers(call)
  }
}

function pick<T>(choices: readonly T[], lot: number): T {
  return choices[Math.floor(lot * choices.length)] as T
}

const SLOW_ANSWERS = 0.2
const SLOW_MS = 1500

/** Every response is correct, and some are slow. */
export function createSlowness(seed: number): Behaviour {
  const draw = createRandom(seed + 1_000_000)
  return async ({ work, answer }) => {
    const made = work()
    if (draw() < SLOW_ANSWERS) await pause(draw() * SLOW_MS)
    answer(made)
  }
}

/** The provider allows this number of calls in each time window, and responds to the others with 429. */
export function createQuota(allowed: number, windowMs: number) {
  const began = performance.now()
  const counts = { asked: 0, refused: 0 }
  let current = 0
  let used = 0
  const behaviour: Behaviour = ({ exchange, work, answer }) => {
    const elapsed = performance.now() - began
    const index = Math.floor(elapsed / windowMs)
    if (index !== current) used = 0
    current = index
    counts.asked++
    if (used++ < allowed) return answer(work())
    counts.refused++
    const headers = { 'retry-after': String(Math.ceil(((index + 1) * windowMs - elapsed) / 1000)) }
    exchange.send({ status: 429, headers, body: { error: 'temporarily_unavailable' } })
  }
  return { behaviour, counts }
}
