/** Runs the scripts of the session store in Redis over many connections, without servers, as fast as Redis answers. */
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createKeyring } from '../dist/cookie/keyring.js'
import { sessionFormat } from '../dist/sessions/redis-cells.js'
import { answerParent } from './processes.js'
import { openCells } from './session-cells.js'
import { createSession } from './sessions.js'

const SESSIONS_OF_CONNECTION = 50
const SESSION_BYTES = 2000
const DAY_MS = 86_400_000

const CHANNEL = 'bench:messages'
// The length of a message of the server.
const MESSAGE = 'x'.repeat(150)
const SUBSCRIBERS = 100
const PUBLISHERS = 4

const format = sessionFormat(createKeyring([randomUUID()]).sealer('stored session'), () => 2 * DAY_MS)
let connections
let subscribers

answerParent({
  /** @param {{ url: string, connections: number }} given */
  async start({ url, connections: count }) {
    connections = await Promise.all(
      Array.from({ length: count }, async () => {
        const redis = new Redis(url)
        const cells = await openCells(redis, format)
        return { redis, cells, sessions: Array.from({ length: SESSIONS_OF_CONNECTION }, newSession) }
      })
    )
    subscribers = Array.from({ length: SUBSCRIBERS }, () => new Redis(url))
    await Promise.all(subscribers.map(redis => redis.subscribe(CHANNEL)))
    await Promise.all(connections.map(({ redis }) => redis.ping()))
  },
  /** Returns the number of sessions. */
  async signIn() {
    await forEachSession(logIn)
    return connections.length * SESSIONS_OF_CONNECTION
  },
  /**
   * Publishes messages. Returns the number of deliveries to a subscriber.
   * @param {number} seconds
   */
  async publish(seconds) {
    const end = performance.now() + seconds * 1000
    let count = 0
    const publish = async ({ redis }) => {
      while (performance.now() < end) count += await redis.publish(CHANNEL, MESSAGE)
    }
    await Promise.all(connections.slice(0, PUBLISHERS).map(publish))
    return count
  },
  /**
   * Returns the number of events.
   * @param {{ what: keyof typeof EVENTS, seconds: number, pauseMs?: number }} job `pauseMs` is the average pause of a connection
   *   between two events
   */
  async run({ what, seconds, pauseMs = 0 }) {
    const end = performance.now() + seconds * 1000
    let count = 0
    await forEachSession(
      EVENTS[what],
      () => performance.now() < end,
      async () => {
        count++
        if (pauseMs > 0) await setTimeout(Math.random() * 2 * pauseMs)
      }
    )
    return count
  }
})

/** Calls the action for the sessions of each connection in turn, once or while `goesOn` returns true. */
async function forEachSession(action, goesOn = undefined, ended = () => {}) {
  await Promise.all(
    connections.map(async ({ cells, sessions }) => {
      do {
        for (const session of sessions) {
          if (goesOn && !goesOn()) break
          await action(cells, session)
          await ended()
        }
      } while (goesOn?.())
    })
  )
}

function newSession() {
  return {
    kind: 'complete',
    id: randomUUID(),
    rev: 0,
    loggedInAt: Date.now(),
    issuedAt: Date.now(),
    fields: createSession(SESSION_BYTES)
  }
}

const EVENTS = {
  /** The read of a request whose session is in the cookie, or in the memory of the process. */
  request: (cells, { id }) => cells.read(id, false),
  /** The read of a request with `session.store: redis` at a process that has not used the session in the last minute. */
  requestOfStored: (cells, { id }) => cells.read(id, true),
  /** The scripts of a refresh in dual mode. */
  async refresh(cells, session) {
    await store(cells, session)
    await store(cells, session)
  }
}

function logIn(cells, session) {
  return session.rev === 0 ? store(cells, session) : undefined
}

/** Acquires the lease of a session and stores its next revision. */
async function store(cells, session) {
  const owner = randomUUID()
  const { id, rev } = session
  await cells.acquire(id, rev, owner)
  session.rev = rev + 1
  await cells.commit(id, rev, owner, { ...session })
}
