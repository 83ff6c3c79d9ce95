// Decides why a login ended, from the provider's record of all tokens (provider.ts) and the list of killed processes.
import type { Grant, Reuse, Rotation } from './provider.js'

/**
 * - `lost`: the servers should have kept the login
 * - `in flight`: the refresh token was in use in a process that was killed before it received the provider's response,
 *   or the process could store the response only in an old master of Redis. These are the only accepted losses.
 * - `ended`: the provider spent the refresh token and never sent the new one, so no client could have kept the login
 */
export interface Verdict {
  readonly kind: 'lost' | 'in flight' | 'ended'
  readonly why: string
  /** The history of a lost login, in one line. */
  readonly story?: string
}

export interface Circumstances {
  /** Returns when the process with this client secret was killed with SIGKILL, or undefined if it was not. */
  killedAt(caller: string): number | undefined
  /** Returns true if a session with this refresh token was stored in Redis. */
  wasStored(refreshToken: string): boolean
  /** Returns true if this process could reach only an old master at that time, whose last writes are lost. */
  wasCutOff(caller: string, at: number): boolean
}

// A process that is killed within this time after the provider's response may not have read the response yet, if the
// machine is busy.
const READ_MS = 250

/** Returns why a login ended although the user did not log out. */
export function judgeLoss(grant: Grant | undefined, circumstances: Circumstances): Verdict {
  if (!grant) return lost('the provider does not know this login')
  const [first] = grant.reuses
  return first ? judgeReuse(grant, first, circumstances) : lost('the provider would still have refreshed it')
}

/** Returns why a refresh token that had been spent was used again. */
export function judgeReuse(grant: Grant, reuse: Reuse, circumstances: Circumstances): Verdict {
  const rotation = grant.rotations.find(({ spent }) => spent === reuse.token)
  if (!rotation) return lost('the provider never spent it')
  if (rotation.fate === 'withheld') return { kind: 'ended', why: 'the provider kept its response' }
  const killed = circumstances.killedAt(rotation.caller)
  if (killed !== undefined && killed < responseReadAt(rotation)) {
    if (rotation.fate !== 'responded') return inFlight('the process was killed before the response came')
    return inFlight('the process was killed with the response just received')
  }
  if (killed !== undefined && killed < reuse.at && !circumstances.wasStored(rotation.issued)) {
    return inFlight('the process was killed before it had stored the response in Redis')
  }
  if (rotation.fate === 'responded' && circumstances.wasCutOff(rotation.caller, rotation.settledAt)) {
    return inFlight('the process stored the response in an old master')
  }
  const why = rotation.fate === 'responded' ? 'used again after the response' : `used twice (${rotation.fate})`
  return lost(why, tell(rotation, reuse, killed))
}

function tell({ caller, askedAt, fate, settledAt }: Rotation, reuse: Reuse, killed: number | undefined): string {
  const after = (at: number) => `${Math.round(at - askedAt)} ms`
  const times = `${fate} after ${after(settledAt)}, used again by process ${reuse.caller} after ${after(reuse.at)}`
  const end = killed === undefined ? '' : ` (killed after ${after(killed)})`
  return `at ${Math.round(askedAt)} ms process ${caller}${end} spent it, ${times}`
}

function responseReadAt({ fate, settledAt }: Rotation): number {
  return fate === 'responded' ? settledAt + READ_MS : Number.POSITIVE_INFINITY
}

function lost(why: string, story?: string): Verdict {
  return { kind: 'lost', why, ...(story !== undefined && { story }) }
}

function inFlight(why: string): Verdict {
  return { kind: 'in flight', why }
}
