// The hostile provider of this suite: single-use rotating refresh tokens, the grant ended on reuse, failing as it is
// told to, and writing down what became of every answer.
import { createHostileIdp, type Exchange, type HostileIdp } from '../helpers/hostile-idp/index.js'
import { createRandom } from '../helpers/random.js'
import { type Book, createBook, type Rotation } from './book.js'
import { type Behaviour, type Call, fine } from './calls.js'
import type { Scope } from './scope.js'
import type { Weather } from './weather.js'

export interface Provider {
  readonly idp: HostileIdp
  readonly book: Book
  /** Refreshes asked for since the start. */
  readonly refreshCalls: number
  /** How refreshes go from now on. */
  follow(how: Behaviour | Weather): void
}

export interface ProviderOptions {
  readonly seed: number
  readonly callbackUrl: string
  /** How long the servers wait. */
  readonly timeLimitMs: number
}

const SECRET = 'gT5wNc8vKq'

/** Each process has a secret of its own, as platforms accept several while one is rotated: so the book knows who asked. */
export function secretOf(process: string): string {
  return `${SECRET}.${process}`
}

/** Everyone has a name of their own, so that a mix-up would show. */
export function nameOf(grant: number | undefined): string {
  return `Person ${grant}`
}

export async function startProvider(scope: Scope, options: ProviderOptions): Promise<Provider> {
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
  let current: () => Behaviour = () => fine.answers

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
    // Before the answer is whole this means that the caller hung up; after it, it says nothing any more.
    response.once('close', () => settle('hung up'))
    response.once('finish', () => settle('answered'))
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
    // Code exchanges always succeed, because a login that never began cannot be lost.
    if (form.grant_type !== 'refresh_token') return fine.answers(callOf(exchange))
    refreshCalls++
    return current()(callOf(exchange))
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
    get refreshCalls() {
      return refreshCalls
    },
    follow(how) {
      const began = performance.now()
      current = typeof how === 'function' ? () => how : () => how.at(performance.now() - began)
    }
  }
}

function callerOf({ request }: Exchange): string {
  const basic = request.headers.authorization?.replace('Basic ', '') ?? ''
  const secret = Buffer.from(basic, 'base64').toString().split(':').slice(1).join(':')
  return secret.slice(SECRET.length + 1)
}
