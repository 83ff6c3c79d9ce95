// Random failures of the provider, generated from a seed. Spells of about a second follow each other, and each spell
// has its own shares of failures.
import { createRandom } from '../../helpers/random.js'
import { type Behaviour, fine, late, unspent, withholding } from './calls.js'

/** Shares of calls, from 0 to 1. The remaining calls are answered at once. */
interface Spell {
  /** Answers that arrive late but within the time limit. */
  readonly slow: number
  readonly unspent: number
  /** Answers after the time limit. */
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
// The behaviour `hangs` is excluded, because its calls would last longer than the storm.
const { hangs, ...passing } = unspent
const MIN_MS = 300
const MAX_MS = 1300

export interface Weather {
  /** Returns the behaviour of a call that arrives this many milliseconds after the start. */
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
      const until = (plan.at(-1)?.until ?? 0) + MIN_MS + order() * (MAX_MS - MIN_MS)
      plan.push({ spell: pick(spells, order()), until })
    }
  }

  return {
    at(elapsedMs) {
      const spell = spellAt(elapsedMs)
      let lot = draw()
      for (const [share, behaviours] of [
        [spell.withheld, withholding],
        [spell.late, late],
        [spell.unspent, passing],
        [spell.slow, fine]
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
