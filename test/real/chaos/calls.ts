// The ways in which a call to the token endpoint can go. Each says when the provider spends the token (work) and when
// it responds.
import { setTimeout as pause } from 'node:timers/promises'
import { type Exchange, type Fault, faults } from '../../helpers/hostile-idp/index.js'
import type { Answer } from '../../helpers/hostile-idp/requests.js'

export interface Call {
  readonly exchange: Exchange
  /** The name of the server process that makes the call. */
  readonly caller: string
  /** Spends the token and returns the correct response without sending it. */
  work(): Answer
  /** Sends the response. The book (provider.ts) records if the caller was still connected. */
  answer(answer: Answer): void
  /** Records that the complete response will never be sent. */
  withhold(): void
  /** The time limit of the caller's requests to the provider. */
  readonly timeLimitMs: number
  /** Returns a random number from 0 to 1. */
  random(): number
}

export type Behaviour = (call: Call) => void | Promise<void>

// Shares of the caller's time limit, with a margin for slow machines.
const IN_TIME = 0.5
const TOO_LATE = 1.2
// A connection without a response breaks after this time, as at a gateway.
const BREAKS_AFTER = 1.5

const answers: Behaviour = ({ work, answer }) => answer(work())

/** The response arrives within the time limit. */
export const fine = {
  answers,
  'responds late': async ({ work, answer, random, timeLimitMs }) => {
    const late = work()
    await pause(random() * timeLimitMs * IN_TIME)
    answer(late)
  },
  'works late': async call => {
    await pause(call.random() * call.timeLimitMs * IN_TIME)
    return answers(call)
  }
} satisfies Record<string, Behaviour>

/** The call fails and the token is not spent. */
export const unspent = {
  'breaks late': async ({ exchange, timeLimitMs }) => {
    await pause(timeLimitMs * BREAKS_AFTER)
    return faults.reset()(exchange)
  },
  resets: instead(faults.reset()),
  'responds with 500': instead(faults.status(500)),
  'responds with a page': instead(faults.html(502)),
  'responds with 429': instead(faults.tooManyRequests(1)),
  'responds with nonsense': instead(faults.notJson(200))
} satisfies Record<string, Behaviour>

/** The token is spent, and the complete response is never sent. */
export const withholding = {
  'resets after': withheld(faults.reset()),
  'breaks late after': async ({ exchange, work, withhold, timeLimitMs }) => {
    work()
    withhold()
    await pause(timeLimitMs * BREAKS_AFTER)
    exchange.response.socket?.resetAndDestroy()
  },
  'breaks off': withheld(faults.half()),
  'loses the response': withheld(faults.html(504))
} satisfies Record<string, Behaviour>

/** The token is spent, and the response arrives after the time limit. */
export const late = {
  'responds too late': async ({ work, answer, timeLimitMs }) => {
    const made = work()
    await pause(timeLimitMs * TOO_LATE)
    answer(made)
  }
} satisfies Record<string, Behaviour>

function instead(fault: Fault): Behaviour {
  return ({ exchange }) => fault(exchange)
}

function withheld(fault: Fault): Behaviour {
  return ({ exchange, work, withhold }) => {
    const answer = work()
    withhold()
    return fault({ ...exchange, process: () => answer })
  }
}
