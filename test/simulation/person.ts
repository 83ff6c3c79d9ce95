// A person with a browser that has one cookie, and somebody who has an old copy of that cookie.
import type { SessionRecord } from '#src/session/record.js'
import type { Grant } from './provider.js'
import type { SimulatedServer } from './server.js'
import type { World } from './world.js'

export interface Person {
  readonly name: string
  readonly grant: () => Grant | undefined
  /** The cookie of the browser. Undefined if the server has removed it. */
  cookie(): SessionRecord | undefined
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
}

// A record is kept for 60 s after the browser has sent its revision. A request that takes longer may come too late.
const MAX_UNDER_WAY_MS = 50_000

export function createPerson(options: PersonOptions): Person {
  const { world, name, grantOf, servers, gatewayShare, copyShare, logoutsAreSafe, keepMs, cookiesAreKnown } = options
  const violations: string[] = []
  let cookie: SessionRecord | undefined
  let copy: SessionRecord | undefined
  let isLeaving = false
  let isLoggedOut = false

  const networkMs = () => world.between(1, 30)

  /** Sends one request. The response arrives unless the process is killed. */
  function send(server: SimulatedServer, record: SessionRecord, isFromBrowser: boolean, setsCookies: boolean): void {
    const { process } = server
    const sentAt = world.now()
    world.after(
      networkMs(),
      () => {
        const wasLoggedOut = isLoggedOut
        void server.request(record).then(
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
              // The server sets no cookie in a response that is later than a record is kept.
              if (!isFromBrowser || !setsCookies || isSignedOut || world.now() - sentAt >= keepMs) return
              if ('record' in answer && answer.record !== record) cookie = answer.record
              if (answer.kind === 'ended') cookie = undefined
            })
          },
          error => violations.push(`${name}: ${String(error)}`)
        )
      },
      { process, kind: 'input' }
    )
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
      for (let attempt = 0; attempt < 3 && !cookie; attempt++) cookie = await server.logIn(name)
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
      if ('record' in answer) cookie = answer.record
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
