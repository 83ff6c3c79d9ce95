// A person with a browser that has one cookie, and somebody who has an old copy of that cookie.

import type { Refreshed } from '#src/refresh/refresh.js'
import { type CookieSession, isKeptInRedis, type SessionRecord, type SessionReference } from '#src/session/record.js'
import { StoreUnavailableError } from '#src/store/unavailable.js'
import type { Grant } from './provider.js'
import type { SimulatedServer } from './server.js'
import type { World } from './world.js'

export interface Person {
  readonly name: string
  readonly grant: () => Grant | undefined
  /** The cookie of the browser. Undefined if the server has removed it. */
  cookie(): CookieSession | undefined
  /** Logs in. Resolves with true on success. */
  logIn(server: SimulatedServer): Promise<boolean>
  /** Sends some requests at once, as a page does. */
  openPage(): void
  /** Resolves with true if a request now shows that the person is signed in. */
  isSignedIn(server: SimulatedServer): Promise<boolean>
  logOut(server: SimulatedServer): void
  readonly violations: readonly string[]
}

export interface PersonOptions {
  readonly world: World
  readonly name: string
  readonly grantOf: (code: string) => Grant | undefined
  readonly servers: readonly SimulatedServer[]
  /** The share of requests whose response cannot set a cookie, as with forward-auth. */
  readonly gatewayShare: number
  /** The share of requests that are sent with an old copy of the cookie. */
  readonly copyShare: number
  /** True if a logout must be known everywhere at once, because no fault can delay it. */
  readonly logoutsAreSafe: boolean
  /** The time in milliseconds for which the store keeps a record that the browser has. */
  readonly keepMs: number
  /** True if the browser's own requests must never be taken for those of an old copy of its cookie. */
  readonly cookiesAreKnown: boolean
  /** True if a session in Redis must never be missing there. */
  readonly sessionsAreKept: boolean
}

// A record is kept for 60 s after the browser has sent its revision. A request that takes longer may come too late.
const MAX_UNDER_WAY_MS = 50_000
// The share of requests to a session in Redis whose handler changes the session.
const CHANGE_SHARE = 0.2

export function createPerson(options: PersonOptions): Person {
  const {
    world,
    name,
    grantOf,
    servers,
    gatewayShare,
    copyShare,
    logoutsAreSafe,
    keepMs,
    cookiesAreKnown,
    sessionsAreKept
  } = options
  const violations: string[] = []
  let cookie: CookieSession | undefined
  let copy: CookieSession | undefined
  let changes = 0
  let isLeaving = false
  let isLoggedOut = false

  const networkMs = () => world.between(1, 30)

  /** Sends one request. The response arrives unless the process is killed. */
  function send(server: SimulatedServer, record: CookieSession, isFromBrowser: boolean, setsCookies: boolean): void {
    const { process } = server
    const sentAt = world.now()
    world.after(
      networkMs(),
      () => {
        const wasLoggedOut = isLoggedOut
        void (isKeptInRedis(record) ? answerFromRedis(server, record) : server.request(record)).then(
          answer => {
            const isSignedOut = server.store.isLoggedOut(record.id)
            world.after(networkMs(), () => {
              if (answer.kind === 'live' && wasLoggedOut && logoutsAreSafe) {
                violations.push(`${name} was let in after the logout had been answered`)
              }
              const isLate = world.now() - sentAt > MAX_UNDER_WAY_MS
              if (answer.kind === 'stale' && isFromBrowser && cookiesAreKnown && !isLate && !isLeaving) {
                violations.push(`${name} was taken for an old copy of the cookie`)
              }
              if (answer.kind === 'missing' && sessionsAreKept && !isLeaving) {
                violations.push(`${name}: Redis does not have the session`)
              }
              // The server sets no cookie in a response that is later than a record is kept.
              if (!isFromBrowser || !setsCookies || isSignedOut || world.now() - sentAt >= keepMs) return
              if ('record' in answer && needsCookie(record, answer.record)) cookie = cookieOf(answer.record)
              if (answer.kind === 'ended') cookie = undefined
            })
          },
          error => violations.push(`${name}: ${String(error)}`)
        )
      },
      { process, kind: 'input' }
    )
  }

  /** Answers a request to a handler that sometimes changes the session. */
  async function answerFromRedis(server: SimulatedServer, reference: SessionReference): Promise<Refreshed> {
    const answer = await server.request(reference)
    if (answer.kind !== 'live' || world.random() >= CHANGE_SHARE) return answer
    const changed = await server.change(answer.record, `change ${++changes}`).catch((error: unknown) => {
      if (!(error instanceof StoreUnavailableError)) throw error
      return answer.record
    })
    return changed ? { kind: 'live', record: changed } : { kind: 'out' }
  }

  function anyServer(): SimulatedServer | undefined {
    const alive = servers.filter(({ process }) => process.isAlive)
    return alive[Math.floor(world.random() * alive.length)]
  }

  return {
    name,
    grant: () => grantOf(name),
    cookie: () => cookie,
    violations,
    async logIn(server) {
      // If the provider is slow, the error page repeats the callback.
      for (let attempt = 0; attempt < 3 && !cookie; attempt++) {
        const session = await server.logIn(name)
        cookie = session && cookieOf(session)
      }
      copy = cookie
      return cookie !== undefined
    },
    openPage() {
      const isCopy = world.random() < copyShare
      const record = isCopy ? copy : cookie
      const requests = 1 + Math.floor(world.random() * 4)
      const setsCookies = world.random() >= gatewayShare
      for (let request = 0; request < requests && record; request++) {
        const server = anyServer()
        if (server) send(server, record, !isCopy, setsCookies)
      }
    },
    async isSignedIn(server) {
      if (!cookie) return false
      const before = cookie
      const answer = await server.request(before)
      if ('record' in answer) cookie = cookieOf(answer.record)
      return answer.kind === 'live'
    },
    logOut(server) {
      const record = cookie
      if (!record) return
      world.note(`${name} logs out`)
      isLeaving = true
      world.after(
        networkMs(),
        () => {
          void server.logOut(record).then(() => {
            isLoggedOut = true
          })
        },
        { process: server.process, kind: 'input' }
      )
    }
  }
}

/** Returns the content of the cookie that a server sets for this session. */
function cookieOf(record: SessionRecord): CookieSession {
  if (!isKeptInRedis(record)) return record
  const { id, rev, key } = record
  return { id, rev, key }
}

/** Returns true if the response to a request with the cookie `sent` sets the cookie of `record`. */
function needsCookie(sent: CookieSession, record: SessionRecord): boolean {
  return isKeptInRedis(sent) ? record.rev !== sent.rev : record !== sent
}
