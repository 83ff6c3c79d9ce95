// Chooses the fault for each request: first from the endpoint's queue, then from its rule, then from its hold. Without
// any of them the request is answered correctly.
import { createDeferred } from '../deferred.js'
import { type Exchange, type Fault, faults } from './faults.js'
import type { Endpoint, IdpRequest } from './requests.js'

export interface Hold {
  /** Lets all waiting requests continue. Later requests do not wait. */
  release(): void
  /** Resolves when `count` requests (default 1) are waiting. */
  arrived(count?: number): Promise<void>
  readonly waiting: number
}

export interface FaultPlan {
  /**
   * The next requests to an endpoint meet these faults, one fault for each request, in order. `faults.none` answers a
   * request correctly.
   */
  fail(endpoint: Endpoint, ...next: readonly Fault[]): void
  /** Applies a rule to every request to an endpoint, until `heal` is called. */
  failWhen(endpoint: Endpoint, rule: (request: IdpRequest) => Fault | undefined): void
  /**
   * Keeps requests waiting. By default they wait before the provider processes them, so no code or token is spent yet.
   */
  hold(endpoint: Endpoint, when?: 'before' | 'after'): Hold
  /** Returns to correct behaviour, for one endpoint or for all, and releases the holds. */
  heal(endpoint?: Endpoint): void
  faultFor(request: IdpRequest): Fault
}

export function createFaultPlan(): FaultPlan {
  const queues = new Map<Endpoint, Fault[]>()
  const rules = new Map<Endpoint, (request: IdpRequest) => Fault | undefined>()
  const holds = new Map<Endpoint, { readonly fault: Fault; readonly release: () => void }>()

  function heal(endpoint?: Endpoint): void {
    for (const [held, hold] of holds) if (endpoint === undefined || held === endpoint) hold.release()
    for (const plan of [queues, rules]) endpoint === undefined ? plan.clear() : plan.delete(endpoint)
  }

  return {
    fail: (endpoint, ...next) => {
      queues.set(endpoint, [...(queues.get(endpoint) ?? []), ...next])
    },
    failWhen: (endpoint, rule) => {
      rules.set(endpoint, rule)
    },
    hold: (endpoint, when = 'before') => {
      const { fault, hold } = createHold(when, () => holds.delete(endpoint))
      holds.get(endpoint)?.release()
      holds.set(endpoint, { fault, release: hold.release })
      return hold
    },
    heal,
    faultFor: request => {
      if (!request.endpoint) return faults.none
      return (
        queues.get(request.endpoint)?.shift() ??
        rules.get(request.endpoint)?.(request) ??
        holds.get(request.endpoint)?.fault ??
        faults.none
      )
    }
  }
}

function createHold(when: 'before' | 'after', onRelease: () => void): { fault: Fault; hold: Hold } {
  let waiting = 0
  const [opened, open] = createDeferred()
  const watchers: { readonly count: number; readonly resolve: () => void }[] = []
  const notify = () => {
    for (const { count, resolve } of watchers) if (waiting >= count) resolve()
  }

  const fault = async (exchange: Exchange): Promise<void> => {
    const early = when === 'after' ? exchange.process() : undefined
    waiting += 1
    notify()
    await opened
    exchange.send(early ?? exchange.process())
  }
  const hold: Hold = {
    release: () => {
      onRelease()
      open()
    },
    arrived: (count = 1) =>
      new Promise(resolve => {
        watchers.push({ count, resolve })
        notify()
      }),
    get waiting() {
      return waiting
    }
  }
  return { fault, hold }
}
