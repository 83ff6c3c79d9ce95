// Pieces of work for a store to run, and functions that observe their progress.
import type { Redis } from 'ioredis'
import type { Settled } from '#src/coordination/coordination.js'
import { eventually } from '../helpers/eventually.js'

export const KEEP_MS = 60_000

/** A short lease in milliseconds, so that the lock of a stalled process can be taken over soon. */
export const SHORT_LEASE = { leaseMs: 1500, callMs: 500 }

export interface ControlledWork {
  readonly run: () => Promise<Settled<unknown>>
  readonly started: Promise<void>
  finish(value: unknown): void
  fail(error: Error): void
}

/** Work that a test finishes by a call. */
export function controlledWork(hasTokens = false): ControlledWork {
  let start = () => {}
  let finish: ControlledWork['finish'] = () => {}
  let fail: ControlledWork['fail'] = () => {}
  const started = new Promise<void>(resolve => {
    start = resolve
  })
  const ended = new Promise<unknown>((resolve, reject) => {
    finish = resolve
    fail = reject
  })
  return {
    started,
    finish: value => finish(value),
    fail: error => fail(error),
    async run() {
      start()
      return { value: await ended, hasTokens, keepMs: KEEP_MS }
    }
  }
}

export async function never(): Promise<never> {
  throw new Error('this work was not to be done')
}

/** Resolves when a replica has found a lock taken and has registered as a waiter. */
export async function someoneWaits(admin: Redis): Promise<void> {
  await eventually(async () => (await admin.keys('*:waiters')).length > 0)
}

export async function commandsProcessed(admin: Redis): Promise<Record<string, number>> {
  const stats = await admin.info('commandstats')
  const calls = [...stats.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)].map(([, name, n]) => [name, Number(n)] as const)
  return Object.fromEntries(
    calls.filter(([name]) => ['evalsha', 'get', 'pexpire', 'pttl', 'publish', 'set'].includes(name ?? ''))
  )
}
