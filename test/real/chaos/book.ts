// The book is the provider's record of all grants, one for each login. It contains each code and refresh token that a process
// used, and the fate of the provider's answer. If a login is lost, the book shows if the loss was avoidable.

/**
 * - `pending`: the token is spent and the answer is not sent yet
 * - `answered`: the whole answer was handed to the connection
 * - `withheld`: the provider did not send the answer, or sent only a part of it
 * - `hung up`: the caller disconnected before the answer
 */
export type Fate = 'pending' | 'answered' | 'withheld' | 'hung up'

/** One use of a single-use token. */
export interface Rotation {
  /** The code or refresh token that the process used. */
  readonly spent: string
  /** The new refresh token. */
  readonly issued: string
  readonly caller: string
  /** Milliseconds of performance.now(), as all times in this suite. */
  readonly askedAt: number
  fate: Fate
  /** The time when the fate became final. */
  settledAt: number
}

/** The use of a token that had already been spent. The provider then ends the grant. */
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
  // Maps each used code or refresh token to its grant.
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
