/** Runs the scripts of the session store in Redis over many connections, without servers, as fast as Redis answers. */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { createKeyring } from '../dist/session/keyring.js'
import { createRedisScripts } from '../dist/store/redis-scripts.js'
import { LOCK_MS, SETTLE_MS } from '../dist/store/scripts.js'
import { answerParent } from './processes.js'
import { createSession } from './sessions.js'

const SESSIONS_OF_CONNECTION = 50
const SESSION_BYTES = 2000
const DAY_MS = 86_400_000
const TIMES = { entryMs: 2 * DAY_MS, loginMs: 900_000, keepMs: 100, lockMs: LOCK_MS, settleMs: SETTLE_MS }

const CHANNEL = 'bench:messages'
// The length of a message of the server.
const MESSAGE = 'x'.repeat(150)
const SUBSCRIBERS = 100
const PUBLISHERS = 4

const sealer = createKeyring([randomUUID()]).sealer('stored session')
let connections
let subscribers

answerParent({
  /** @param {{ url: string, connections: number }} given */
  async start({ url, connections: count }) {
    connections = Array.from({ length: count }, () => {
      const redis = new Redis(url)
      const scripts = createRedisScripts(command => command(redis), 'bench:', sealer, TIMES)
      return { redis, scripts, sessions: Array.from({ length: SESSIONS_OF_CONNECTION }, newSession) }
    })
    subscribers = Array.from({ length: SUBSCRIBERS }, () => new Redis(url))
    await Promise.all(subscribers.map(redis => redis.subscribe(CHANNEL)))
    await Promise.all(connections.map(({ redis }) => redis.ping()))
  },
  /** Returns the number of sessions. */
  async signIn() {
    await forEachSession(logIn)
    return connections.length * SESSIONS_OF_CONNECTION
  },
  /** Tells Redis that all browsers have their cookies. It deletes the records after `keepMs`. */
  see: () => forEachSession((scripts, { id, rev }) => scripts.seen(id, rev, randomUUID())),
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
   * @param {{ what: keyof typeof EVENTS, seconds: number }} job
   */
  async run({ what, seconds }) {
    const end = performance.now() + seconds * 1000
    let count = 0
    await forEachSession(
      EVENTS[what],
      () => performance.now() < end,
      () => count++
    )
    return count
  }
})

/** Calls the action for the sessions of each connection in turn, once or while `goesOn` returns true. */
async function forEachSession(action, goesOn = undefined, ended = () => {}) {
  await Promise.all(
    connections.map(async ({ scripts, sessions }) => {
      do {
        for (const session of sessions) {
          if (goesOn && !goesOn()) break
          await action(scripts, session)
          ended()
        }
      } while (goesOn?.())
    })
  )
}

function newSession() {
  return {
    id: randomUUID(),
    rev: 0,
    loggedInAt: Date.now(),
    issuedAt: Date.now(),
    fields: createSession(SESSION_BYTES)
  }
}

const EVENTS = {
  /** The script of a request whose session is in the cookie. */
  async request(scripts, { id, rev }) {
    expectKind('same', await scripts.look(id, rev))
  },
  /** The script of a request with `session.store: redis`. */
  async requestOfStored(scripts, { id }) {
    expectKind('newer', await scripts.look(id, 0))
  },
  /** The scripts of a refresh in dual mode, and the one that runs when the browser has sent its new cookie. */
  async refresh(scripts, session) {
    const owner = randomUUID()
    await take(scripts, session, owner)
    for (const keepsLock of [true, false]) await store(scripts, session, owner, keepsLock)
    await scripts.seen(session.id, session.rev, randomUUID())
  }
}

async function logIn(scripts, session) {
  const owner = randomUUID()
  await take(scripts, session, owner)
  await store(scripts, session, owner, false)
}

async function take(scripts, { id, rev }, owner) {
  expectKind('mine', await scripts.take(id, { rev, owner, newLoss: randomUUID() }))
}

async function store(scripts, session, owner, keepsLock) {
  session.rev++
  const outcome = { kind: 'tokens', record: session, keepsLock, pauseMs: 0 }
  expectKind('saved', await scripts.save(session.id, { rev: session.rev, owner, outcome, newLoss: randomUUID() }))
}

function expectKind(kind, answer) {
  if (answer.kind !== kind) throw new Error(`The script answered "${answer.kind}" instead of "${kind}".`)
}
