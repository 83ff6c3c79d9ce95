// The provider of this suite. Its refresh tokens are single-use, a second use ends the grant, it fails as a scenario
// tells it to, and it records the fate of every response.
import { createHostileIdp, type Exchange } from '../../helpers/hostile-idp/index.js'
import { createRandom } from '../../helpers/random.js'
import type { Teardown } from '../../helpers/scope.js'
import { type Behaviour, type Call, fine } from './calls.js'

/**
 * - `pending`: the token is spent and the response is not sent yet
 * - `responded`: the whole response was handed to the connection
 * - `withheld`: the provider did not send the response, or sent only a part of it
 * - `hung up`: the caller disconnected before the response
 */
export type Fate = 'pending' | 'responded' | 'withheld' | 'hung up'

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

export type Provider = Awaited<ReturnType<typeof startProvider>>

interface ProviderOptions {
  readonly seed: number
  readonly callbackUrl: string
  /** The time limit of the servers' requests to the provider. */
  readonly timeLimitMs: number
}

const SECRET = 'gT5wNc8vKq'

/** Each process has its own client secret, so the book knows which process made a request. */
export function secretOf(process: string): string {
  return `${SECRET}.${process}`
}

/** Each login has its own name, so that a mix-up of sessions is noticed. */
export function nameOf(grant: number | undefined): string {
  return `User ${grant}`
}

export async function startProvider(scope: Teardown, options: ProviderOptions) {
  const { seed, callbackUrl, timeLimitMs } = options
  const idp = await createHostileIdp(scope, {
    clientId: 'chaos',
    isClientSecret: presented => presented.startsWith(SECRET),
    callbackUrl,
    accessTokenLength: 600
  })
  const book = createBook()
  const random = createRandom(seed + 2_000_000)
  let refreshCalls = 0
  let current: Behaviour = fine.answers

  function callOf(exchange: Exchange): Call {
    const { request, response } = exchange
    const caller = callerOf(exchange)
    const askedAt = performance.now()
    let rotation: Rotation | undefined
    const settle = (fate: Rotation['fate']) => {
      if (rotation?.fate !== 'pending') return
      rotation.fate = fate
      rotation.settledAt = performance.now()
    }
    // Before the response is complete, this event means that the caller disconnected. Afterwards settle() ignores it.
    response.once('close', () => settle('hung up'))
    response.once('finish', () => settle('responded'))
    return {
      exchange,
      caller,
      timeLimitMs,
      random,
      work() {
        const { form } = request
        const reuses = idp.reuses.length
        const answer = exchange.process()
        if (idp.reuses.length > reuses) book.reused({ token: form.refresh_token ?? '', caller, at: performance.now() })
        const issued = idp.issued.refreshTokens.at(-1)
        if (answer.status === 200 && issued) {
          const spent = form.refresh_token ?? form.code ?? ''
          rotation = book.rotated(issued.grant, { spent, issued: issued.value, caller, askedAt })
          book.belongs((answer.body as { access_token: string }).access_token, issued.grant)
          if (response.destroyed) settle('hung up')
        }
        return answer
      },
      answer: exchange.send,
      withhold: () => settle('withheld')
    }
  }

  idp.failWhen('token', ({ form }) => exchange => {
    // Code exchanges always succeed, because these scenarios are about refreshes.
    if (form.grant_type !== 'refresh_token') return fine.answers(callOf(exchange))
    refreshCalls++
    return current(callOf(exchange))
  })
  idp.failWhen('userinfo', () => exchange => {
    const answer = exchange.process()
    const bearer = exchange.request.headers.authorization?.replace('Bearer ', '') ?? ''
    const name = nameOf(book.grantOfAccessToken(bearer))
    exchange.send(answer.status === 200 ? { status: 200, body: { name, given_name: name } } : answer)
  })

  return {
    idp,
    book,
    /** The number of refresh requests since the start. */
    get refreshCalls() {
      return refreshCalls
    },
    /** Sets the responses to later refresh requests. */
    follow(behaviour: Behaviour) {
      current = behaviour
    }
  }
}

function callerOf({ request }: Exchange): string {
  const basic = request.headers.authorization?.replace('Basic ', '') ?? ''
  const secret = Buffer.from(basic, 'base64').toString().split(':').slice(1).join(':')
  return secret.slice(SECRET.length + 1)
}

/**
 * The provider's record of all grants, one for each login. It contains each code and refresh token that a process used,
 * and the fate of the provider's response. If a login is lost, the book shows if the loss was avoidable.
 */
export function createBook() {
  const grants = new Map<number, Grant>()
  // Maps each used code or refresh token to its grant.
  const spenders = new Map<string, Grant>()
  const accessTokens = new Map<string, number>()
  return {
    grants,
    rotated(id: number, given: Pick<Rotation, 'spent' | 'issued' | 'caller' | 'askedAt'>) {
      const grant = grants.get(id) ?? { id, rotations: [], reuses: [] }
      const rotation: Rotation = { ...given, fate: 'pending', settledAt: Number.POSITIVE_INFINITY }
      grants.set(id, grant)
      spenders.set(given.spent, grant)
      grant.rotations.push(rotation)
      return rotation
    },
    reused(reuse: Reuse) {
      spenders.get(reuse.token)?.reuses.push(reuse)
    },
    belongs(accessToken: string, grant: number) {
      accessTokens.set(accessToken, grant)
    },
    grantOfCode: (code: string) => spenders.get(code),
    grantOfAccessToken: (accessToken: string) => accessTokens.get(accessToken)
  }
}
