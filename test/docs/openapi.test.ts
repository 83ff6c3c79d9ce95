import test, { type ExecutionContext } from 'ava'
import { cookieNames } from '#src/config/site.js'
import type { BrowserResponse } from '../helpers/browser.js'
import { createClock } from '../helpers/clock.js'
import { discovered, publicOrigin } from '../helpers/config.js'
import { createHostileIdp, type Endpoint, type Fault, faults } from '../helpers/hostile-idp/index.js'
import { packageJson } from '../helpers/repository.js'
import {
  openCallback,
  signIn,
  startLogin,
  startTestServer,
  type TestServer,
  type TestServerOptions
} from '../helpers/server.js'
import { sessionCookies, withParameters } from '../web/support.js'
import { broken, documentedAnswers, mismatches, readOpenApi, serverRoutes } from './openapi.js'

const document = readOpenApi()
const documented = documentedAnswers(document)

type Headers = Record<string, string>
type Provoke = (server: TestServer, headers: Headers) => Promise<BrowserResponse>

interface Options {
  readonly what?: string
  readonly mode?: TestServerOptions['mode']
  /** The server reads its endpoints from a discovery document that the test can change. */
  readonly discovery?: boolean
  /** The server accepts logout tokens. It then reads its endpoints from the discovery document, too. */
  readonly backchannel?: boolean
  /** The user is signed in, and Redis can no longer be reached. */
  readonly redisIsAway?: boolean
  /** The access list. The login then requests an ID token. */
  readonly allow?: readonly string[]
  /** The time limit for requests to the provider. */
  readonly timeout?: number
  /** The shutdown delay, for responses of a server that is stopping. */
  readonly delay?: number
}

/** A documented response, and how the test provokes it. */
type Provocation = readonly [answer: string, provoke: Provoke, options?: Options]

const [login, callback, logout] = ['/api/auth/login', '/api/auth/callback', '/api/auth/logout']
const backchannelLogout = '/api/auth/backchannel-logout'
const [profile, token, client] = ['/api/auth/profile', '/api/auth/token', '/api/auth/client.js']

const get = (path: string, more: Headers = {}) => {
  return ({ browser }: TestServer, headers: Headers) => browser.get(path, { headers: { ...headers, ...more } })
}
const withBody = (path: string) => {
  return ({ browser }: TestServer, headers: Headers) => browser.get(path, { headers, body: 'body' })
}
const head = (path: string) => {
  return ({ browser }: TestServer) => browser.request('HEAD', path)
}

/** Signs in, then causes `trouble`, and then requests the path. */
const signedIn = (path: string, trouble: (server: TestServer) => void = () => {}) => {
  return async (server: TestServer, headers: Headers) => {
    await signIn(server.browser)
    trouble(server)
    return server.browser.get(path, { headers })
  }
}

const loseLoginCookie = ({ browser }: TestServer) => browser.cookies.delete('platform_session_login')

const comeBackSignedIn = async (server: TestServer, headers: Headers) => {
  await signIn(server.browser)
  return cameBack(loseLoginCookie)(server, headers)
}

/** Starts a login, causes `trouble` before the callback, and then opens the callback. */
const cameBack = (
  trouble: (server: TestServer) => void,
  change: (back: string) => string = back => back,
  clean: (server: TestServer) => void = () => {}
) => {
  return async (server: TestServer, headers: Headers) => {
    const back = await startLogin(server.browser)
    trouble(server)
    const response = await server.browser.get(change(back), { headers })
    clean(server)
    return response
  }
}

const sendLogoutToken = (claims: Record<string, unknown>) => {
  return ({ browser, idp }: TestServer, headers: Headers) =>
    browser.request('POST', backchannelLogout, { headers, form: { logout_token: idp.logoutToken(claims) } })
}

const refusedWith = (error: string) =>
  cameBack(
    () => {},
    back => withParameters(back, { code: undefined, error })
  )
/** Signs in, lets the tokens expire, then causes `trouble`, and then requests the path. */
const expired = (path: string, trouble: (server: TestServer) => void = () => {}) =>
  signedIn(path, server => {
    server.clock.advanceSeconds(3600)
    trouble(server)
  })

/** Lets an endpoint of the provider fail. */
const failing = (endpoint: Endpoint, fault: Fault, provoke: Provoke): Provoke => {
  return (server, headers) => {
    server.idp.failWhen(endpoint, () => fault)
    return provoke(server, headers)
  }
}

const stopping = (provoke: Provoke): Provoke => {
  return (server, headers) => {
    void server.server.close()
    return provoke(server, headers)
  }
}

const repeatCallback: Provoke = async ({ browser }) => {
  const back = await startLogin(browser, '/models?id=7')
  await openCallback(browser, back)
  return openCallback(browser, back)
}

/** Requests the path after the account of a session has left the group of the access list. */
const withoutRight = (path: string): Provoke => {
  return async ({ browser, clock, idp }, headers) => {
    idp.settings.quirks = { idTokenOnRefresh: true }
    idp.settings.idTokenClaims = claims => ({ ...claims, groups: 'admins' })
    await signIn(browser)
    idp.settings.idTokenClaims = claims => claims
    clock.advanceSeconds(3600)
    return browser.get(path, { headers })
  }
}

const unchanged: Provoke = async (server, headers) => {
  const { etag } = (await server.browser.get(client)).headers
  return get(client, { 'if-none-match': String(etag) })(server, headers)
}

const forget = ({ browser }: TestServer) => {
  for (const [name] of sessionCookies(browser)) browser.cookies.delete(name)
}
const growTokens = ({ idp }: TestServer) => {
  idp.settings.accessTokenLength = 16_000
}
const failNext = (endpoint: Endpoint, fault: Fault) => {
  return ({ idp }: TestServer) => idp.fail(endpoint, fault)
}

const providerFailures = [
  ['502', faults.html(500)],
  ['503', faults.tooManyRequests(7)],
  ['504', faults.reset()]
] as const

const provocations: readonly Provocation[] = [
  [`GET ${login} 302`, get(`${login}?return_to=/models`)],
  [`GET ${login} 400`, signedIn(login, forget)],
  [`GET ${login} 403`, get(login, { 'sec-fetch-mode': 'cors' })],
  [`GET ${login} 413`, withBody(login)],
  ...providerFailures.map(
    ([status, fault]): Provocation => [
      `GET ${login} ${status}`,
      failing('discovery', fault, get(login)),
      { discovery: true }
    ]
  ),
  [`GET ${callback} 302`, ({ browser }) => signIn(browser), { what: 'of a first login' }],
  [`GET ${callback} 302`, repeatCallback, { what: 'of a repeated callback', mode: 'dual' }],
  [`GET ${callback} 400`, get(callback), { what: 'without parameters' }],
  [`GET ${callback} 302`, cameBack(loseLoginCookie), { what: 'without the login cookie' }],
  [`GET ${callback} 303`, comeBackSignedIn],
  [`GET ${callback} 400`, refusedWith('invalid_scope'), { what: 'with an error from the provider' }],
  [`GET ${callback} 403`, refusedWith('access_denied')],
  [`GET ${callback} 413`, withBody(callback)],
  [`GET ${callback} 500`, cameBack(growTokens)],
  [`GET ${callback} 502`, cameBack(failNext('token', faults.html(500)))],
  [
    `GET ${callback} 502`,
    cameBack(failNext('token', faults.error('invalid_client', 401))),
    { what: 'for a wrong client secret' }
  ],
  [`GET ${callback} 503`, refusedWith('temporarily_unavailable')],
  [
    `GET ${callback} 503`,
    cameBack(failNext('token', faults.tooManyRequests(60))),
    { what: 'when the provider is busy' }
  ],
  [`GET ${callback} 504`, cameBack(failNext('token', faults.reset()))],
  [`GET ${logout} 302`, signedIn(logout), { what: 'with a session' }],
  [`GET ${logout} 302`, get(logout), { what: 'without a session' }],
  [`GET ${logout} 403`, get(logout, { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' })],
  [`GET ${logout} 400`, get(`${logout}?everywhere=no`)],
  [
    `GET ${logout} 503`,
    get(`${logout}?everywhere=true`, { 'sec-fetch-site': 'same-origin' }),
    { backchannel: true, redisIsAway: true }
  ],
  [`GET ${logout} 413`, withBody(logout)],
  [`POST ${backchannelLogout} 200`, sendLogoutToken({ sub: 'user-1' }), { backchannel: true }],
  [`POST ${backchannelLogout} 400`, sendLogoutToken({}), { backchannel: true }],
  ...providerFailures.map(
    ([status, fault]): Provocation => [
      `POST ${backchannelLogout} ${status}`,
      failing('jwks', fault, sendLogoutToken({ sub: 'user-1' })),
      { backchannel: true }
    ]
  ),
  ...[profile, token].flatMap((path): Provocation[] => [
    [`GET ${path} 200`, signedIn(path), { what: 'without a refresh', mode: 'dual' }],
    [`GET ${path} 200`, expired(path), { what: 'after a refresh', mode: 'dual' }],
    [`GET ${path} 401`, get(path), { mode: 'dual' }],
    [
      `GET ${path} 401`,
      expired(path, ({ idp }) => idp.endAllGrants()),
      { what: 'after the provider ended the grant', mode: 'dual' }
    ],
    [`GET ${path} 403`, get(path, { 'sec-fetch-site': 'same-site' }), { mode: 'dual' }],
    [
      `GET ${path} 403`,
      withoutRight(path),
      { what: 'after the account has lost its right', mode: 'dual', allow: ['groups=admins'] }
    ],
    [`GET ${path} 413`, withBody(path), { mode: 'dual' }],
    [`GET ${path} 500`, expired(path, growTokens), { mode: 'dual' }],
    [`GET ${path} 503`, expired(path, failNext('token', faults.status(500))), { mode: 'dual' }]
  ]),
  [`GET ${profile} 502`, expired(profile, failNext('userinfo', faults.empty(401)))],
  [
    `GET ${profile} 503`,
    signedIn(profile, failNext('userinfo', faults.tooManyRequests(7))),
    { what: 'when the provider is busy' }
  ],
  // The limit also applies to the login before it, which must succeed on a slow machine.
  [`GET ${profile} 504`, signedIn(profile, failNext('userinfo', faults.hang())), { timeout: 8 }],
  [`GET ${token} 404`, signedIn(token), { mode: 'single' }],
  [`GET ${client} 304`, unchanged],
  ...[client, '/healthz', '/readyz'].flatMap((path): Provocation[] => [
    [`GET ${path} 200`, get(path)],
    [`HEAD ${path} 200`, head(path)],
    [`GET ${path} 413`, withBody(path)]
  ]),
  ['GET /readyz 503', stopping(get('/readyz')), { delay: 15 }],
  ['HEAD /readyz 503', stopping(head('/readyz')), { delay: 15 }]
]

for (const [answer, provoke, { what = '', ...options } = {}] of provocations) {
  const promise = documented.get(answer)
  const types = Object.keys(promise?.content ?? {})
  for (const accept of types.length > 0 ? types : ['*/*']) {
    test(`${answer} ${what} matches the document, for ${accept}`.replace('  ', ' '), async t => {
      const server = await start(t, options)
      const response = await provoke(server, { accept })
      t.is(`${answer.split(' ', 2).join(' ')} ${response.statusCode}`, answer)
      t.deepEqual(broken(promise ?? { description: '' }, response), [])
      if (types.length > 0) t.true(response.headers['content-type']?.startsWith(accept))
    })
  }
}

async function start(t: ExecutionContext, options: Options): Promise<TestServer> {
  const { mode = 'single', discovery, backchannel = false, redisIsAway = false, allow } = options
  const { timeout = 60, delay = 0 } = options
  const idp = discovery || backchannel ? await createHostileIdp(t) : undefined
  const scopes = ['openid', 'data:read']
  const openid = (backchannel || allow) && { scopes, internalTokenScopes: scopes, publicTokenScopes: ['data:read'] }
  const platform = { timeout, backchannelLogout: backchannel, ...(idp && discovered(idp)), ...openid }
  const settings = { platform, access: { allow }, log: { requests: false }, shutdown: { delay } }
  const clock = createClock()
  const parts = delay > 0 ? { clock } : {}
  const server = await startTestServer(t, { mode, settings, clock, parts, ...(idp && { idp }) })
  t.teardown(() => clock.advanceSeconds(delay))
  if (!redisIsAway) return server
  const { browser } = server
  await signIn(browser)
  const away = { ...settings, redis: { url: 'redis://127.0.0.1:9' } }
  const redis = { timing: { startMs: 1 } }
  const replica = await startTestServer(t, { mode, settings: away, idp: server.idp, clock: server.clock, redis })
  replica.connect(browser)
  return { ...replica, browser }
}

test('the document has the version of the package, and each of its responses is tested', t => {
  t.deepEqual([...documented.keys()].sort(), [...new Set(provocations.map(([answer]) => answer))].sort())
  t.is(document.info.version, packageJson.version)
})

test('the document requires the request id of every response', t => {
  for (const [answer, { headers }] of documented) {
    t.true(headers?.['X-Request-Id']?.required, answer)
  }
})

test('methods and paths that are not documented get the documented responses 405 and 404', async t => {
  const { MethodNotAllowed, NotFound } = document.components.responses
  const { browser } = await start(t, { mode: 'dual', backchannel: true })
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const method of ['HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']) {
      if (method.toLowerCase() in operations) continue
      const response = await browser.request(method, path)
      t.is(response.statusCode, 405, `${method} ${path}`)
      const { content = {}, ...rest } = MethodNotAllowed ?? { description: '' }
      t.deepEqual(broken({ ...rest, ...(method !== 'HEAD' && { content }) }, response), [], `${method} ${path}`)
    }
  }
  for (const path of ['/api/auth/nothing', '/nothing']) {
    const response = await browser.get(path)
    t.is(response.statusCode, 404)
    t.deepEqual(broken(NotFound ?? { description: '' }, response), [], path)
  }
})

test('the document lists every route of the server and no other, and the cookies of a deployment over https', t => {
  t.true(serverRoutes().includes('/api/auth/login'))
  t.deepEqual(Object.keys(document.paths).toSorted(), serverRoutes())
  const { session, loginCookie } = document.components.securitySchemes
  const names = cookieNames('platform_session', `${publicOrigin.replace('http:', 'https:')}/api/auth/callback`)
  t.deepEqual([session?.name, loginCookie?.name], [names.session, names.login])
})

test('the examples in the document match their schemas', t => {
  const schemas = Object.entries(document.components.schemas)
  t.true(schemas.some(([, { examples }]) => Array.isArray(examples)))
  for (const [name, schema] of schemas) {
    for (const example of (schema.examples ?? []) as unknown[]) t.deepEqual(mismatches(schema, example, name), [])
  }
})
