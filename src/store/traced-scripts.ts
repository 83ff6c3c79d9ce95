import { inSpan, type Tracing } from '../telemetry/tracing.js'
import type { SessionScripts } from './scripts.js'

/** Returns scripts with a span for each call. The arguments are not recorded. */
export function tracedScripts<Stored>(scripts: SessionScripts<Stored>, tracing: Tracing): SessionScripts<Stored> {
  function span<T>(name: keyof SessionScripts<Stored>, work: () => Promise<T>): Promise<T> {
    const attributes = {
      'db.system.name': 'redis',
      'db.operation.name': 'EVALSHA',
      'db.stored_procedure.name': name
    }
    return inSpan(tracing, `redis ${name}`, attributes, work)
  }

  return {
    look: (...args) => span('look', () => scripts.look(...args)),
    take: (...args) => span('take', () => scripts.take(...args)),
    save: (...args) => span('save', () => scripts.save(...args)),
    seen: (...args) => span('seen', () => scripts.seen(...args)),
    unseen: (...args) => span('unseen', () => scripts.unseen(...args)),
    hold: (...args) => span('hold', () => scripts.hold(...args)),
    out: (...args) => span('out', () => scripts.out(...args))
  }
}
