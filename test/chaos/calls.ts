// What a call to the token endpoint may meet, each event told in terms of the work (the token is spent) and the answer.
import { setTimeout as pause } from 'node:timers/promises'
import { type Exchange, type Fault, faults } from '../helpers/hostile-idp/index.js'
import type { Answer } from '../helpers/hostile-idp/requests.js'

export interface Call {
  readonly exchange: Exchange
  /** Which process asks. */
  readonly caller: string
  /** Spends the token, and gives the answer that should follow. */
  work(): Answer
  /** Sends it; the book will say whether somebody was there to take it. */
  answer(answer: Answer): void
  /** From here on it is certain that the answer never leaves whole. */
  withhold(): void
  /** How long the caller waits. */
  readonly timeLimitMs: number
  /** From 0 to 1. */
  random(): number
}

export type Behaviour = (call: Call) => void | Promise<void>

// Shares of the caller's time limit, with room for a machine that is slow itself.
const IN_TIME = 0.5
const TOO_LATE = 1.2

const answers: Behaviour = ({ work, answer }) => answer(work())

/** The answer comes, in its time. */
export const fine = {
  answers,
  'answers late': async ({ work, answer, random, timeLimitMs }) => {
    const late = work()
    await pause(random() * timeLimitMs * IN_TIME)
    answer(late)
  },
  'works late': async call => {
    await pause(call.random() * call.timeLimitMs * IN_TIME)
    return answers(call)
  }
} satisfies Record<string, Behaviour>

/** It fails, and the token is as good as before. */
export const unspent = {
  hangs: instead(faults.hang()),
  resets: instead(faults.reset()),
  'answers 500': instead(faults.status(500)),
  'answers a page': instead(faults.html(502)),
  'answers 429': instead(faults.tooManyRequests(1)),
  'answers nonsense': instead(faults.notJson(200))
} satisfies Record<string, Behaviour>

/** The token is spent, and nobody will ever see the answer. */
export const spent = {
  'resets after': withheld(faults.reset()),
  'hangs after': withheld(faults.hang()),
  'breaks off': withheld(faults.half()),
  'loses the answer': withheld(faults.html(504)),
  'answers too late': async ({ work, answer, timeLimitMs }) => {
    const late = work()
    await pause(timeLimitMs * TOO_LATE)
    answer(late)
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

/** Keeps calls before anything is spent; who goes away meanwhile has spent nothing. */
export interface Hold {
  readonly behaviour: Behaviour
  /** The first that waits here. */
  readonly caller: Promise<string>
  release(): void
}

export function createHold(): Hold {
  let arrive = (_caller: string) => {}
  let release = () => {}
  const caller = new Promise<string>(resolve => {
    arrive = resolve
  })
  const released = new Promise<void>(resolve => {
    release = resolve
  })
  return {
    caller,
    release,
    async behaviour(call) {
      arrive(call.caller)
      await released
      if (!call.exchange.response.destroyed) await answers(call)
    }
  }
}
