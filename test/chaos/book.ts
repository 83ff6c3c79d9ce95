// What the provider knows of every grant: which token it spent for whom, and what became of the answer. It alone can
// say whether a login could have been saved.

/**
 * - `pending`: the work is done, the answer is still to come
 * - `answered`: the whole answer was handed to the connection
 * - `withheld`: the provider kept it, or broke off in the middle
 * - `hung up`: the caller was gone before it came
 */
export type Fate = 'pending' | 'answered' | 'withheld' | 'hung up'

/** One use of a single-use token. */
export interface Rotation {
  readonly spent: string
  readonly issued: string
  readonly caller: string
  /** Milliseconds, as everywhere in this suite on the clock of performance.now(). */
  readonly askedAt: number
  fate: Fate
  /** When its fate was sealed. */
  settledAt: number
}

/** A token that was shown again after it had been spent; the provider then ends the grant. */
export interface Reuse {
  readonly token: string
  readonly caller: string
  readonly at: number
}

export interface Grant {
  readonly id: number
  readonly rotations: Rotation[]
  readonly reuses: Reuse[]
}

export interface Book {
  readonly grants: ReadonlyMap<number, Grant>
  rotated(grant: number, rotation: Pick<Rotation, 'spent' | 'issued' | 'caller' | 'askedAt'>): Rotation
  reused(reuse: Reuse): void
  belongs(accessToken: string, grant: number): void
  grantOfCode(code: string): Grant | undefined
  grantOfAccessToken(accessToken: string): number | undefined
}

export function createBook(): Book {
  const grants = new Map<number, Grant>()
  // The grant a code or refresh token was spent for.
  const spenders = new Map<string, Grant>()
  const accessTokens = new Map<string, number>()
  return {
    grants,
    rotated(id, given) {
      const grant = grants.get(id) ?? { id, rotations: [], reuses: [] }
      const rotation: Rotation = { ...given, fate: 'pending', settledAt: Number.POSITIVE_INFINITY }
      grants.set(id, grant)
      spenders.set(given.spent, grant)
      grant.rotations.push(rotation)
      return rotation
    },
    reused(reuse) {
      spenders.get(reuse.token)?.reuses.push(reuse)
    },
    belongs(accessToken, grant) {
      accessTokens.set(accessToken, grant)
    },
    grantOfCode: code => spenders.get(code),
    grantOfAccessToken: accessToken => accessTokens.get(accessToken)
  }
}
