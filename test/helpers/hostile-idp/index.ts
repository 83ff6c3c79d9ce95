// An identity provider on loopback for tests. It is strict and correct until a test tells it to fail, and it records
// every request.
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ExecutionContext } from 'ava'
// The first request of a process to its provider loads this package. While many tests start, that took longer than the two
// seconds that a revocation has. It is loaded before the tests for this reason.
import 'got'
import { listen } from '../ports.js'
import { createFaultPlan, type Hold } from './fault-plan.js'
import { bytesOf } from './faults.js'
import { createGrants, type GrantSettings, type Issued, type IssuedToken } from './grants.js'
import { type Answer, type Endpoint, endpoints, html, type IdpRequest, paths } from './requests.js'

export { type Exchange, type Fault, faults } from './faults.js'
export { type Quirks, quirksOf } from './quirks.js'
export type { Answer, Endpoint, Hold, IdpRequest, Issued, IssuedToken }

export interface HostileIdpOptions {
  readonly clientId?: string
  readonly clientSecret?: string
  /** Replaces the comparison with `clientSecret`, for tests in which several client secrets are valid. */
  readonly isClientSecret?: (presented: string) => boolean
  readonly callbackUrl?: string
  readonly now?: () => number
  readonly accessTokenLength?: number
  readonly accessTokenLifetimeSeconds?: number
}

export type HostileIdp = Awaited<ReturnType<typeof createHostileIdp>>

type Alteration = (document: Record<string, unknown>) => Record<string, unknown>

export async function createHostileIdp(t: Pick<ExecutionContext, 'teardown'>, options: HostileIdpOptions = {}) {
  const clientSecret = options.clientSecret ?? `client-secret-${Math.random().toString(36).slice(2)}`
  const settings: GrantSettings = {
    clientId: options.clientId ?? 'test-client',
    clientSecret,
    isClientSecret: options.isClientSecret ?? (presented => presented === clientSecret),
    callbackUrl: options.callbackUrl,
    now: options.now ?? Date.now,
    accessTokenLength: options.accessTokenLength ?? 1000,
    accessTokenLifetimeSeconds: options.accessTokenLifetimeSeconds ?? 3599,
    profile: { sub: 'user-1', name: 'Ada Lovelace', given_name: 'Ada', family_name: 'Lovelace' },
    login: {},
    idTokenClaims: claims => claims,
    quirks: {}
  }
  const requests: IdpRequest[] = []
  const sockets = new Set<Socket>()
  let alteration: Alteration | undefined = document => document
  let connections = 0
  let port = 0
  const address = (endpoint: Endpoint) => `http://127.0.0.1:${port}${paths[endpoint]}`
  const issuer = () => `http://127.0.0.1:${port}`
  const grants = createGrants(settings, issuer)
  const { faultFor, ...plan } = createFaultPlan()

  function handle(request: IdpRequest): Answer {
    switch (request.endpoint) {
      case 'discovery':
        return alteration ? { status: 200, body: alteration(discoveryDocument()) } : html('Not found', 404)
      case 'jwks':
        return { status: 200, body: grants.jwks }
      case 'authorize':
        return grants.authorize(request)
      case 'token':
        return request.method === 'POST' ? grants.token(request) : html('Method not allowed', 405)
      case 'userinfo':
        return grants.userinfo(request)
      case 'revoke':
        return request.method === 'POST' ? grants.revoke(request) : html('Method not allowed', 405)
      case 'endSession': {
        const { post_logout_redirect_uri: location, id_token_hint } = request.query
        if (settings.quirks.needsIdTokenHint && location && !grants.issued.idTokens.includes(id_token_hint ?? '')) {
          return { status: 302, headers: { location: `${issuer()}/error?error=invalid_request` } }
        }
        const { logoutParameter } = settings.quirks
        if (logoutParameter && request.query[logoutParameter] !== location) return html('A parameter is missing', 400)
        return location ? { status: 302, headers: { location } } : html('Signed out')
      }
      default:
        return html('Not found', 404)
    }
  }

  async function exchange(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await readRequest(incoming)
    requests.push(request)
    await faultFor(request)({
      request,
      process: () => handle(request),
      send: answer => sendAnswer(response, answer),
      response
    })
  }

  function discoveryDocument(): Record<string, unknown> {
    return {
      issuer: issuer(),
      authorization_endpoint: address('authorize'),
      token_endpoint: address('token'),
      userinfo_endpoint: address('userinfo'),
      revocation_endpoint: address('revoke'),
      end_session_endpoint: address('endSession'),
      jwks_uri: address('jwks'),
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256']
    }
  }

  function open(): Server {
    const opened = createServer({ keepAliveTimeout: 60_000 }, (incoming, response) => {
      // If the client has disconnected, as many tests make it do, no response can be sent.
      exchange(incoming, response).catch(() => response.destroy())
    })
    opened.on('connection', socket => {
      connections += 1
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
    })
    return opened
  }

  let server = open()
  port = await listenAnywhere(t, server)

  async function offline(): Promise<void> {
    if (!server.listening) return
    await new Promise<void>(resolve => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
    // A client in this process notices the cut within the next turns of the event loop. Before that, it would reuse a
    // dead connection.
    for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate)
  }

  t.teardown(async () => {
    plan.heal()
    await offline()
  })
  return {
    ...plan,
    issued: grants.issued,
    reuses: grants.reuses,
    revoked: grants.revoked,
    isAlive: grants.isAlive,
    endAllGrants: grants.endAllGrants,
    rotateKeys: grants.rotateKeys,
    /**
     * Returns a logout token (OpenID Connect Back-Channel Logout section 2.4). `changes` must contain `sub` or `sid`. A claim of
     * undefined is left out.
     */
    logoutToken(changes: Record<string, unknown> = {}, header: Record<string, unknown> = {}) {
      const iat = Math.floor(settings.now() / 1000)
      const usual = {
        iss: issuer(),
        aud: settings.clientId,
        iat,
        exp: iat + 120,
        jti: randomUUID(),
        events: { 'http://schemas.openid.net/event/backchannel-logout': {} }
      }
      return grants.signJwt({ ...usual, ...changes }, { typ: 'logout+jwt', ...header })
    },
    issuer: issuer(),
    port,
    clientId: settings.clientId,
    clientSecret: settings.clientSecret,
    authorizationEndpoint: address('authorize'),
    tokenEndpoint: address('token'),
    userinfoEndpoint: address('userinfo'),
    revocationEndpoint: address('revoke'),
    endSessionEndpoint: address('endSession'),
    /** May be changed at any time. A change applies to everything issued or sent afterwards. */
    settings,
    /**
     * Alters the discovery document. A member of undefined is left out. If this is undefined, the provider responds with 404.
     */
    get discovery() {
      return alteration
    },
    set discovery(given: Alteration | undefined) {
      alteration = given
    },
    requests: requests as readonly IdpRequest[],
    requestsTo: (endpoint: Endpoint) => requests.filter(request => request.endpoint === endpoint),
    get tokenRequests() {
      return requests.filter(request => request.endpoint === 'token')
    },
    /**
     * Returns everything that must never leave the server: codes, refresh tokens, ID tokens, verifiers, the client secret, and
     * all access tokens except those with exactly the scope `except`.
     */
    secrets({ except }: { readonly except?: string } = {}) {
      const { codes, accessTokens, refreshTokens, idTokens, codeVerifiers } = grants.issued
      const hidden = accessTokens.filter(({ scope }) => scope !== except).map(({ value }) => value)
      const rest = refreshTokens.map(({ value }) => value)
      return [...codes, ...hidden, ...rest, ...idTokens, ...codeVerifiers, settings.clientSecret]
    },
    /** The number of connections accepted so far. */
    get connections() {
      return connections
    },
    /** Closes the port and cuts every connection. New connections are refused (ECONNREFUSED). */
    offline,
    async online() {
      if (server.listening) return
      server = open()
      await listen(t, server, port)
    }
  }
}

// The port is below the range that systems assign for port 0, so no other server takes it while the provider is
// offline.
async function listenAnywhere(t: Pick<ExecutionContext, 'teardown'>, server: Server): Promise<number> {
  for (let attempts = 0; attempts < 50; attempts += 1) {
    try {
      return await listen(t, server, 20_000 + Math.floor(Math.random() * 12_000))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    }
  }
  throw new Error('No free port for the identity provider in fifty tries.')
}

async function readRequest(incoming: IncomingMessage): Promise<IdpRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks).toString('utf8')
  const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://idp')
  return {
    endpoint: endpoints.find(endpoint => paths[endpoint] === pathname),
    method: incoming.method ?? '',
    path: incoming.url ?? '',
    query: Object.fromEntries(searchParams),
    headers: incoming.headers,
    form: Object.fromEntries(new URLSearchParams(body)),
    body
  }
}

function sendAnswer(response: ServerResponse, { status, headers = {}, body = '' }: Answer): void {
  if (response.destroyed) return
  const type = typeof body === 'string' ? {} : { 'content-type': 'application/json' }
  const bytes = bytesOf(body)
  response.writeHead(status, { ...type, 'content-length': bytes.length, ...headers })
  response.end(bytes)
}
