// The provider's bad days, from a seed: spells of a second or so, each with its own way of failing.
import { createRandom } from '../helpers/random.js'
import { type Behaviour, fine, spent, unspent } from './calls.js'

/** Shares of calls, from 0 to 1; the rest is answered at once. */
interface Spell {
  readonly late: number
  readonly unspent: number
  readonly spent: number
}

const spells: readonly Spell[] = [
  { late: 0.1, unspent: 0, spent: 0 },
  { late: 0.3, unspent: 0.1, spent: 0 },
  { late: 0.2, unspent: 0.2, spent: 0.02 },
  { late: 0, unspent: 0.5, spent: 0 },
  { late: 0.9, unspent: 0.05, spent: 0 },
  { late: 0.1, unspent: 0.1, spent: 0.05 },
  { late: 0, unspent: 1, spent: 0 }
]
const SHORTEST_MS = 300
const LONGEST_MS = 1300

export interface Weather {
  /** What a call meets, that many milliseconds after the weather began. */
  at(elapsedMs: number): Behaviour
}

export function createWeather(seed: number): Weather {
  const order = createRandom(seed)
  const draw = createRandom(seed + 1_000_000)
  const plan: { readonly spell: Spell; readonly until: number }[] = []

  function spellAt(elapsedMs: number): Spell {
    for (;;) {
      const now = plan.find(({ until }) => elapsedMs < until)
      if (now) return now.spell
      const until = (plan.at(-1)?.until ?? 0) + SHORTEST_MS + order() * (LONGEST_MS - SHORTEST_MS)
      plan.push({ spell: pick(spells, order()), until })
    }
  }

  return {
    at(elapsedMs) {
      const spell = spellAt(elapsedMs)
      let lot = draw()
      for (const [share, behaviours] of [
        [spell.spent, spent],
        [spell.unspent, unspent],
        [spell.late, fine]
      ] as const) {
        if (lot < share) return pick(Object.values<Behaviour>(behaviours), draw())
        lot -= share
      }
      return fine.answers
    }
  }
}

function pick<T>(choices: readonly T[], lot: number): T {
  return choices[Math.floor(lot * choices.length)] as T
}
