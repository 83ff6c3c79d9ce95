// Whether a login that is gone could have been saved: decided from the provider's book and the list of what was killed.
import type { Grant, Reuse, Rotation } from './book.js'

export interface Verdict {
  readonly kind: 'unavoidable' | 'lost'
  readonly why: string
  /** For a loss that should not have been: what happened, for whoever has to find out why. */
  readonly story?: string
  /** How long a process that was killed had had the answer that went with it, in milliseconds. */
  readonly heldMs?: number
}

export interface Circumstances {
  /** When the process that showed this client secret was killed without warning. */
  killedAt(caller: string): number | undefined
  /** Whether Redis could not be used, by every process, at some time between the two moments. */
  wasRedisAway(from: number, to: number): boolean
  /** How long the servers wait for the provider. */
  readonly timeLimitMs: number
}

// A process that lived this long after the provider's answer had the time to hand it on; one killed sooner may not have
// read it yet on a machine that is as busy as this one.
const HAND_ON_MS = 250
// The provider sees a request later than its caller's timer began, much later when all share two busy cores. A server
// that gives up for another reason than the time gives up at any moment, also in the first half.
const PATIENCE = 0.5

/** Why a login that its person did not end is gone. */
export function judgeLoss(grant: Grant | undefined, circumstances: Circumstances): Verdict {
  if (!grant) return lost('the provider does not know this login')
  const [first] = grant.reuses
  return first ? judgeReuse(grant, first, circumstances) : lost('the provider would still have renewed it')
}

/** Why a spent token was shown again. */
export function judgeReuse(grant: Grant, reuse: Reuse, circumstances: Circumstances): Verdict {
  const rotation = grant.rotations.find(({ spent }) => spent === reuse.token)
  if (!rotation) return lost('the provider never spent it')
  if (rotation.fate === 'withheld') return unavoidable('the provider kept its answer')
  const killedAt = circumstances.killedAt(rotation.caller)
  if (killedAt !== undefined && killedAt < diedUntil(rotation)) {
    if (rotation.fate !== 'answered') return unavoidable('the process was killed before the answer came')
    const heldMs = Math.max(0, killedAt - rotation.settledAt)
    return { ...unavoidable('the process was killed with the answer just received'), heldMs }
  }
  const waited = rotation.settledAt - rotation.askedAt
  if (rotation.fate === 'hung up' && waited >= circumstances.timeLimitMs * PATIENCE) {
    return unavoidable('the answer came after the time limit')
  }
  const story = tell(rotation, reuse, killedAt)
  if (circumstances.wasRedisAway(rotation.askedAt, reuse.at))
    return lost('renewed twice around an absence of Redis', story)
  const why = rotation.fate === 'answered' ? 'renewed again after the answer' : `renewed twice (${rotation.fate})`
  return lost(why, story)
}

function tell({ caller, askedAt, fate, settledAt }: Rotation, reuse: Reuse, killedAt: number | undefined): string {
  const after = (at: number) => `${Math.round(at - askedAt)} ms`
  const times = `${fate} after ${after(settledAt)}, shown again by process ${reuse.caller} after ${after(reuse.at)}`
  const end = killedAt === undefined ? '' : ` (killed after ${after(killedAt)})`
  return `at ${Math.round(askedAt)} ms process ${caller}${end} spent it, ${times}`
}

function diedUntil({ fate, settledAt }: Rotation): number {
  return fate === 'answered' ? settledAt + HAND_ON_MS : Number.POSITIVE_INFINITY
}

function lost(why: string, story?: string): Verdict {
  return { kind: 'lost', why, ...(story !== undefined && { story }) }
}

function unavoidable(why: string): Verdict {
  return { kind: 'unavoidable', why }
}
