// A gate at the provider. Each call spends its refresh token at once, and its answer waits until the gate opens.
import type { Behaviour } from './calls.js'

export interface Gate {
  readonly behaviour: Behaviour
  /** Resolves when this many answers wait. Rejects if they do not arrive within 10 s. */
  arrived(count: number): Promise<void>
  open(): void
}

const ARRIVE_MS = 10_000

export function createGate(): Gate {
  let waiting = 0
  let notify = () => {}
  let open = () => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return {
    open,
    async behaviour({ work, answer }) {
      const late = work()
      waiting++
      notify()
      await opened
      answer(late)
    },
    arrived(count) {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`Only ${waiting} of ${count} calls came.`)), ARRIVE_MS)
        notify = () => {
          if (waiting < count) return
          clearTimeout(timer)
          resolve()
        }
        notify()
      })
    }
  }
}
