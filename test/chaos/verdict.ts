// The verdict on a login that is gone, decided from the provider's book and from the list of killed processes.
import type { Grant, Reuse, Rotation } from './book.js'

/**
 * - `lost`: the servers should have kept it
 * - `in flight`: its refresh token was in flight in a process that was killed before the provider's answer reached it,
 *   which is the one accepted exception
 * - `ended`: the provider spent the refresh token and never sent the new one, so that no client could have kept it
 */
export interface Verdict {
  readonly kind: 'lost' | 'in flight' | 'ended'
  readonly why: string
  /** The history of a loss. */
  readonly story?: string
  /** For a killed process, the milliseconds from the provider's answer to the kill. */
  readonly heldMs?: number
}

export interface Circumstances {
  /** When the process with this client secret was killed without warning. */
  killedAt(caller: string): number | undefined
}

// On a busy machine, a process that is killed sooner than this after the provider's answer may not have read it yet.
const READ_MS = 250

/** The reason why a login is gone that its person did not end. */
export function judgeLoss(grant: Grant | undefined, circumstances: Circumstances): Verdict {
  if (!grant) return lost('the provider does not know this login')
  const [first] = grant.reuses
  return first ? judgeReuse(grant, first, circumstances) : lost('the provider would still have refreshed it')
}

/** The reason why a spent token was used again. */
export function judgeReuse(grant: Grant, reuse: Reuse, { killedAt }: Circumstances): Verdict {
  const rotation = grant.rotations.find(({ spent }) => spent === reuse.token)
  if (!rotation) return lost('the provider never spent it')
  if (rotation.fate === 'withheld') return { kind: 'ended', why: 'the provider kept its answer' }
  const killed = killedAt(rotation.caller)
  if (killed !== undefined && killed < answerReadAt(rotation)) {
    if (rotation.fate !== 'answered') return inFlight('the process was killed before the answer came')
    const heldMs = Math.max(0, killed - rotation.settledAt)
    return { ...inFlight('the process was killed with the answer just received'), heldMs }
  }
  const why = rotation.fate === 'answered' ? 'used again after the answer' : `used twice (${rotation.fate})`
  return lost(why, tell(rotation, reuse, killed))
}

function tell({ caller, askedAt, fate, settledAt }: Rotation, reuse: Reuse, killed: number | undefined): string {
  const after = (at: number) => `${Math.round(at - askedAt)} ms`
  const times = `${fate} after ${after(settledAt)}, used again by process ${reuse.caller} after ${after(reuse.at)}`
  const end = killed === undefined ? '' : ` (killed after ${after(killed)})`
  return `at ${Math.round(askedAt)} ms process ${caller}${end} spent it, ${times}`
}

function answerReadAt({ fate, settledAt }: Rotation): number {
  return fate === 'answered' ? settledAt + READ_MS : Number.POSITIVE_INFINITY
}

function lost(why: string, story?: string): Verdict {
  return { kind: 'lost', why, ...(story !== undefined && { story }) }
}

function inFlight(why: string): Verdict {
  return { kind: 'in flight', why }
}
