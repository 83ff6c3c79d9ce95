// Chooses the fault for each request: first from the endpoint's queue, then from its rule, then from its hold. Without
// any of them the request gets the correct response.
import { createDeferred } from '../deferred.js'
import { eventually } from '../eventually.js'
import { type Exchange, type Fault, faults } from './faults.js'
import type { Endpoint, IdpRequest } from './requests.js'

export type Hold = ReturnType<typeof createHold>['hold']
export type FaultPlan = ReturnType<typeof createFaultPlan>

export function createFaultPlan() {
  const queues = new Map<Endpoint, Fault[]>()
  const rules = new Map<Endpoint, (request: IdpRequest) => Fault | undefined>()
  const holds = new Map<Endpoint, { readonly fault: Fault; readonly release: () => void }>()

  /** Returns to correct behaviour, for one endpoint or for all, and releases the holds. */
  function heal(endpoint?: Endpoint): void {
    for (const [held, hold] of holds) if (endpoint === undefined || held === endpoint) hold.release()
    for (const plan of [queues, rules]) endpoint === undefined ? plan.clear() : plan.delete(endpoint)
  }

  return {
    /**
     * The next requests to an endpoint meet these faults, one fault for each request, in order. `faults.none` responds to a
     * request correctly.
     */
    fail(endpoint: Endpoint, ...next: readonly Fault[]) {
      queues.set(endpoint, [...(queues.get(endpoint) ?? []), ...next])
    },
    /** Applies a rule to every request to an endpoint, until `heal` is called. */
    failWhen(endpoint: Endpoint, rule: (request: IdpRequest) => Fault | undefined) {
      rules.set(endpoint, rule)
    },
    /**
     * Keeps requests waiting. By default they wait before the provider processes them, so no code or token is spent yet.
     */
    hold(endpoint: Endpoint, when: 'before' | 'after' = 'before') {
      const { fault, hold } = createHold(when, () => holds.delete(endpoint))
      holds.get(endpoint)?.release()
      holds.set(endpoint, { fault, release: hold.release })
      return hold
    },
    heal,
    faultFor(request: IdpRequest): Fault {
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

function createHold(when: 'before' | 'after', onRelease: () => void) {
  let waiting = 0
  const [opened, open] = createDeferred()
  const fault = async (exchange: Exchange): Promise<void> => {
    const early = when === 'after' ? exchange.process() : undefined
    waiting += 1
    await opened
    exchange.send(early ?? exchange.process())
  }
  const hold = {
    /** Lets all waiting requests continue. Later requests do not wait. */
    release() {
      onRelease()
      open()
    },
    /** Resolves when this number of requests are waiting. */
    arrived: (count = 1) => eventually(() => waiting >= count),
    get waiting() {
      return waiting
    }
  }
  return { fault, hold }
}
