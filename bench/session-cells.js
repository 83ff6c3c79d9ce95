/** Runs the rules of the session store on cells in Redis, as the server does. */
import { apply } from '../dist/sessions/cells.js'
import { createRedisCells, createSwapScript } from '../dist/sessions/redis-cells.js'
import { acquire, commit } from '../dist/sessions/transitions.js'

/**
 * @param {any} commands the connection to Redis
 * @param {any} format how cells are encrypted
 */
export async function openCells(commands, format) {
  const script = createSwapScript({ now: Date.now })
  await script.probe(commands, 'bench:probe')
  const send = (_name, command) => command(commands)
  const cells = createRedisCells(
    { send, script, prefix: 'bench:', channel: 'bench', sealMessage: String, mayBeTooLong: () => false },
    format
  )
  /** The cells as they were seen last, by the ids of their sessions. */
  const seen = new Map()

  async function run(id, rule) {
    const onSeen = snapshot => seen.set(id, snapshot)
    return apply(cells, { id }, rule, { last: seen.get(id), onSeen })
  }

  return {
    read: (id, isWhole) => cells.read({ id }, isWhole),
    /** Acquires the lease of a session at this revision. */
    async acquire(id, rev, owner) {
      const known = { rev, recordRev: rev, record: {}, me: { owner } }
      expectKind('granted', await run(id, (cell, now) => acquire(cell, now, known, 0)))
    },
    /** Stores the next revision of a session. */
    async commit(id, rev, owner, record) {
      const outcome = { kind: 'tokens', record, pauseMs: 0 }
      expectKind('stored', await run(id, (cell, now) => commit(cell, now, { rev, owner, outcome })))
    }
  }
}

function expectKind(kind, result) {
  if (result.kind !== kind) throw new Error(`The rule returned "${result.kind}" instead of "${kind}".`)
}
