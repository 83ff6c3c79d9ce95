/**
 * The demo identity provider: what `--demo` puts in the platform's place, so that the server can be tried without an account,
 * and what the tests of the whole server sign in at. It speaks the platform's dialect (paths, scopes, token format, single-use
 * refresh tokens) through oidc-provider, keeps everything in memory and is reachable from this machine only.
 *
 * Nothing else imports this folder: the command line loads it when it was asked for, and so an ordinary start never does.
 */
import { generateKeyPair, randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import type Koa from 'koa'
import { homeUrlOf } from '../config/addresses.js'
import { createAccessTokenReader } from './access-token.js'
import { countCalls, createCalls, type DemoCalls } from './calls.js'
import { createPages } from './pages.js'
import { createPeople } from './people.js'
import { demoRules, platform } from './platform.js'
import { createProvider } from './provider.js'
import { signIn } from './sign-in.js'
import { redirectIfSignedOut } from './sign-out.js'
import { userInfo } from './user-info.js'

export type { DemoCalls } from './calls.js'
export { offeredPeople } from './people.js'

export interface DemoOptions {
  /** The application's callback URL, the only one registered. */
  callbackUrl: string
  /** The port on 127.0.0.1; any free one if left out or 0. */
  port?: number
  /** How long access tokens live; 3599 as on the platform if left out. */
  tokenLifetimeSeconds?: number
  /**
   * The clock, in milliseconds. It may be ahead of the system's and be moved forward; what oidc-provider checks against the
   * system clock by itself would already be over if this one lagged behind.
   */
  now?: () => number
  /** Told about faults of the demo itself; refused requests are not among them. */
  log?: { error(details: { err: unknown }, message: string): void }
}

export interface Demo {
  /** What `platform.issuer` is set to; everything else is in the discovery document. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** Proxy rules that lead to the demo's platform. */
  readonly proxyRules: readonly string[]
  /** Where the end-session endpoint may lead back to. */
  readonly postLogoutUrl: string
  readonly port: number
  readonly calls: Readonly<DemoCalls>
  /** Stops at once, open connections included. */
  close(): Promise<void>
}

/** Rejects with Node's error if the port cannot be had. */
export async function startDemo(options: DemoOptions): Promise<Demo> {
  const { callbackUrl, port = 0, tokenLifetimeSeconds = 3599, now = Date.now, log } = options
  const postLogoutUrl = homeUrlOf(callbackUrl)
  // About as long as the platform's, and the same in a Basic header with or without form-encoding.
  const clientId = `demo-${randomBytes(33).toString('base64url').slice(0, 43)}`
  const clientSecret = randomBytes(48).toString('base64url')
  const signingKey = await createSigningKey()

  const server = createServer({ keepAliveTimeout: 75_000 })
  await listen(server, port)
  const address = server.address() as AddressInfo
  const issuer = `http://127.0.0.1:${address.port}`

  const calls = createCalls()
  const people = createPeople()
  const pages = createPages({ callbackUrl, homeUrl: postLogoutUrl })
  const provider = createProvider({
    issuer,
    client: { clientId, clientSecret, callbackUrl, postLogoutUrl },
    signingKey,
    tokenLifetimeSeconds,
    people,
    pages,
    now
  })
  provider.use(countCalls(calls))
  const tokens = createAccessTokenReader(signingKey, now)
  provider.use(userInfo({ tokens, people }))
  provider.use(platform({ tokens }))
  provider.use(signIn({ provider, people, pages }))
  provider.use(redirectIfSignedOut())
  const report = (err: unknown) => log?.error({ err }, 'the demo identity provider failed')
  provider.on('server_error', (_ctx, err) => report(err))
  const app: Koa = provider
  app.on('error', (err, ctx?: Koa.Context) => {
    // Koa also reports every status that was thrown on purpose, and every request that its sender broke off.
    const isOurs = err?.expose !== true && ctx?.req.complete !== false && ctx?.writable !== false
    if (isOurs) report(err)
  })
  server.on('request', app.callback())

  return {
    issuer,
    clientId,
    clientSecret,
    proxyRules: demoRules(issuer),
    postLogoutUrl,
    port: address.port,
    calls,
    close: () => close(server)
  }
}

async function createSigningKey() {
  // Encoded where it is made: exported as JWK later, it may on Node 20 wait for ever for a lock that the garbage collector needs.
  const encoding = { format: 'jwk' }
  const options = { modulusLength: 2048, publicKeyEncoding: encoding, privateKeyEncoding: encoding }
  const generate = promisify(generateKeyPair) as (type: 'rsa', options: object) => Promise<{ privateKey: object }>
  const { privateKey } = await generate('rsa', options)
  const kid = randomBytes(32).toString('base64url')
  return { ...privateKey, kid, alg: 'RS256', use: 'sig' }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    // The backlog takes a thousand connections at once; the default of 511 would drop some and delay them by a second.
    server.listen({ host: '127.0.0.1', port, backlog: 2048 }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise(resolve => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
