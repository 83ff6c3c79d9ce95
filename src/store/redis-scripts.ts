/**
 * Runs the scripts of the session store in Redis. Records are encrypted. The encryption authenticates the session id and
 * the revision, so a record cannot be moved to another session or revision. The record of a session that is kept in Redis
 * is also encrypted with the key of the session, which is in the cookie and not in the record.
 */
import type { Sealer } from '../session/keyring.js'
import type { SessionRecord } from '../session/record.js'
import { LUA, type ScriptName } from './lua.js'
import { StoredDataError } from './redis-errors.js'
import { createScriptRunner, type SendCommand } from './script-runner.js'
import {
  MAX_PAUSE_MS,
  type Outcome,
  type Position,
  type Saved,
  type ScriptTimes,
  type SessionScripts,
  type Taken
} from './scripts.js'

type Argument = string | number
type Reply = readonly [kind: string, ...rest: (string | number)[]]

/** @param prefix the beginning of all keys of this deployment */
export function createRedisScripts(
  send: SendCommand,
  prefix: string,
  sealer: Sealer,
  times: ScriptTimes
): SessionScripts<SessionRecord> {
  const { entryMs, loginMs, keepMs, lockMs, settleMs } = times

  const runScript = createScriptRunner(send, LUA)

  function run<T>(name: ScriptName, id: string, args: readonly Argument[]): Promise<T> {
    // The braces are the hash tag. Redis Cluster selects the node of a key by the text between them.
    const entry = `${prefix}{${id}}`
    return runScript(name, [entry, `${entry}:record`], args)
  }

  function seal(id: string, rev: number, record: SessionRecord): string {
    const { key, ...content } = record
    return sealer.seal(Buffer.from(JSON.stringify(content)), contextOf(id, rev), key)
  }

  function opened(id: string, rev: number, text: string, key: string | undefined): SessionRecord | undefined {
    const plaintext = sealer.open(text, contextOf(id, rev), key)
    if (!plaintext) return undefined
    const content = JSON.parse(plaintext.toString()) as SessionRecord
    return key === undefined ? content : { ...content, key }
  }

  function open(id: string, rev: number, text: string, key: string | undefined): SessionRecord {
    const record = opened(id, rev, text, key)
    if (!record) throw new StoredDataError()
    return record
  }

  /** Translates the replies that several scripts share. */
  function positionOf(id: string, key: string | undefined, [kind, ...rest]: Reply): Position<SessionRecord> {
    switch (kind) {
      case 'same':
        return { kind, isSeen: rest[0] === 1, hasRecord: rest[1] === 1 }
      case 'newer': {
        const rev = Number(rest[0])
        return { kind, rev, record: open(id, rev, String(rest[1]), key), isSeen: rest[2] === 1 }
      }
      case 'ended':
        return { kind, reason: String(rest[0]) }
      case 'behind':
      case 'stale':
      case 'lost':
      case 'out':
        return { kind }
      default:
        throw new StoredDataError()
    }
  }

  function outcomeArguments(id: string, rev: number, outcome: Outcome<SessionRecord>): Argument[] {
    switch (outcome.kind) {
      case 'tokens':
        return [seal(id, rev, outcome.record), outcome.keepsLock ? 1 : 0, outcome.pauseMs, keepMs]
      case 'failure':
        return [outcome.pauseMs, outcome.isDoubtful ? 1 : 0]
      case 'ended':
        return [outcome.reason]
    }
  }

  return {
    async look(id, rev, key) {
      return positionOf(id, key, await run<Reply>('look', id, [rev]))
    },
    async take(id, { rev, owner, reported, newLoss, key }): Promise<Taken<SessionRecord>> {
      const times = [entryMs, loginMs, lockMs, settleMs, MAX_PAUSE_MS]
      const reply = await run<Reply>('take', id, [rev, owner, reported ?? '', newLoss, ...times])
      const [kind, value] = reply
      switch (kind) {
        case 'mine':
          return { kind, suspectMs: value === -1 ? undefined : Number(value) }
        case 'held':
          return { kind }
        case 'pausing':
          return { kind, pauseMs: Number(value) }
        case 'unsettled':
          return { kind, loss: String(value) }
        default:
          return positionOf(id, key, reply) as Taken<SessionRecord>
      }
    },
    async save(id, { rev, owner, outcome, newLoss, key }): Promise<Saved<SessionRecord>> {
      const args = [outcome.kind, rev, owner, newLoss, entryMs, loginMs, lockMs, ...outcomeArguments(id, rev, outcome)]
      const reply = await run<Reply>('save', id, args)
      if (reply[0] === 'saved') return { kind: 'saved', isOwner: reply[1] === 1 }
      return positionOf(id, key, reply) as Saved<SessionRecord>
    },
    async seen(id, rev, newLoss, record) {
      const sealed = record ? seal(id, rev, record) : ''
      await run('seen', id, [rev, newLoss, entryMs, loginMs, keepMs, sealed])
    },
    async unseen(id) {
      await run('unseen', id, [entryMs, loginMs])
    },
    async hold(id, rev, owner, leftMs, newLoss) {
      return (await run<number>('hold', id, [rev, owner, leftMs, newLoss, entryMs, loginMs, lockMs])) === 1
    },
    async out(id, key) {
      const reply = await run<readonly [number, string] | null>('out', id, [entryMs, loginMs])
      if (!reply) return undefined
      const rev = Number(reply[0])
      // A logout of all sessions of a person has no cookies, and so no keys of sessions that are kept in Redis.
      const record = opened(id, rev, reply[1], key)
      return record && { rev, record }
    }
  }
}

function contextOf(id: string, rev: number): string {
  return `${id} ${rev}`
}
