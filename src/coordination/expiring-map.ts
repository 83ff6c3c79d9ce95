import { createEndingQueue, type Ending, type EndingQueue } from './ending-queue.js'

/**
 * A map whose entries end by themselves and whose size is bounded. When there is no room for another entry, the one that
 * would end soonest makes way; so nothing alive is dropped while there is something that has ended.
 */
export interface ExpiringMap<T> {
  get(key: string): T | undefined
  /** @param ttlMs after so many milliseconds it ends; 0 or less leaves nothing under `key` */
  set(key: string, value: T, ttlMs: number): void
  delete(key: string): void
  /** What has not ended, each with the milliseconds it has left. May be read slowly, while the map changes. */
  entries(): Iterable<readonly [key: string, value: T, leftMs: number]>
  /** Of all entries, those among them that have ended and are not cleared away yet. */
  readonly size: number
}

interface Entry<T> extends Ending {
  readonly key: string
  readonly value: T
  readonly room: EndingQueue<Entry<T>>
}

// Each insertion clears away a few more than it adds: what has ended goes without a timer, and never all in one go.
const CLEARED_AT_ONCE = 4

/**
 * @param most how many entries a room holds
 * @param now milliseconds since the epoch
 * @param roomOf names the room of an entry, one of a few. Entries of different rooms never make way for each other.
 */
export function createExpiringMap<T>(
  most: number,
  now: () => number,
  roomOf: (key: string, ttlMs: number) => string = () => ''
): ExpiringMap<T> {
  const entries = new Map<string, Entry<T>>()
  const rooms = new Map<string, EndingQueue<Entry<T>>>()
  let written = 0

  function roomNamed(name: string): EndingQueue<Entry<T>> {
    const room = rooms.get(name) ?? createEndingQueue<Entry<T>>()
    rooms.set(name, room)
    return room
  }

  function drop(entry: Entry<T> | undefined) {
    if (!entry) return
    entries.delete(entry.key)
    entry.room.remove(entry)
  }

  function clearEnded(room: EndingQueue<Entry<T>>, time: number) {
    for (let cleared = 0; cleared < CLEARED_AT_ONCE; cleared++) {
      const first = room.first()
      if (!first || first.until > time) return
      drop(first)
    }
  }

  return {
    get(key) {
      const entry = entries.get(key)
      if (!entry) return undefined
      if (entry.until > now()) return entry.value
      drop(entry)
      return undefined
    },
    set(key, value, ttlMs) {
      drop(entries.get(key))
      const time = now()
      for (const room of rooms.values()) clearEnded(room, time)
      if (ttlMs <= 0) return
      const room = roomNamed(roomOf(key, ttlMs))
      // Before the new one comes, which is never the one to go: it is likely to be asked for next.
      if (room.size >= most) drop(room.first())
      const entry = { key, value, until: time + ttlMs, order: written++, place: 0, room }
      room.add(entry)
      entries.set(key, entry)
    },
    delete(key) {
      drop(entries.get(key))
    },
    *entries() {
      for (const [key, { value, until }] of entries) {
        const leftMs = until - now()
        if (leftMs > 0) yield [key, value, leftMs] as const
      }
    },
    get size() {
      return entries.size
    }
  }
}
