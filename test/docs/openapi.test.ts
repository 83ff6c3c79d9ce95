import test, { type ExecutionContext } from 'ava'
import { cookieNames } from '#src/config/site.js'
import type { BrowserResponse } from '../helpers/browser.js'
import { discovered, publicOrigin } from '../helpers/config.js'
import { createHostileIdp, faults } from '../helpers/hostile-idp/index.js'
import { readText } from '../helpers/repository.js'
import {
  openCallback,
  signIn,
  startLogin,
  startTestServer,
  type TestServer,
  type TestServerOptions
} from '../helpers/server.js'
import { sessionCookies, withParameters } from '../http/support.js'
import { broken, documentedAnswers, mismatches, readOpenApi, serverRoutes } from './openapi.js'

const document = readOpenApi()
const documented = documentedAnswers(document)

interface Provocation {
  /** The documented answer that the test provokes. */
  readonly answer: string
  readonly what?: string
  readonly mode?: TestServerOptions['mode']
  /** The server reads its endpoints from a discovery document that the test can change. */
  readonly discovery?: boolean
  /** The server accepts logout tokens. It then reads its endpoints from the discovery document, too. */
  readonly backChannel?: boolean
  /** The user is signed in, and Redis can no longer be reached. */
  readonly redisIsAway?: boolean
  /** The access list. The login then requests an ID token. */
  readonly allow?: readonly string[]
  /** The time limit for requests to the provider. */
  readonly timeoutSeconds?: number
  /** The shutdown delay, for answers of a server that is stopping. */
  readonly delaySeconds?: number
  readonly provoke: (server: TestServer, headers: Record<string, string>) => Promise<BrowserResponse>
}

const [login, callback, logout] = ['/api/auth/login', '/api/auth/callback', '/api/auth/logout']
const backChannelLogout = '/api/auth/backchannel-logout'
const [profile, token, client] = ['/api/auth/profile', '/api/auth/token', '/api/auth/client.js']

type Headers = Record<string, string>
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
    browser.request('POST', backChannelLogout, { headers, form: { logout_token: idp.logoutToken(claims) } })
}

const expire = ({ clock }: TestServer) => clock.advanceSeconds(3600)
const refusedWith = (error: string) =>
  cameBack(
    () => {},
    back => withParameters(back, { code: undefined, error })
  )
const startStopping = ({ server }: TestServer) => void server.close()

const providerFailures = [
  ['502', faults.html(500)],
  ['503', faults.tooManyRequests(7)],
  ['504', faults.reset()]
] as const

const provocations: readonly Provocation[] = [
  { answer: `GET ${login} 302`, provoke: get(`${login}?return_to=/models`) },
  {
    answer: `GET ${login} 400`,
    provoke: signedIn(login, ({ browser }) => {
      for (const [name] of sessionCookies(browser)) browser.cookies.delete(name)
    })
  },
  { answer: `GET ${login} 403`, provoke: get(login, { 'sec-fetch-mode': 'cors' }) },
  { answer: `GET ${login} 413`, provoke: withBody(login) },
  ...providerFailures.map(
    ([status, fault]): Provocation => ({
      answer: `GET ${login} ${status}`,
      discovery: true,
      provoke: (server, headers) => {
        server.idp.failWhen('discovery', () => fault)
        return get(login)(server, headers)
      }
    })
  ),
  { answer: `GET ${callback} 302`, what: 'of a first login', provoke: ({ browser }) => signIn(browser) },
  {
    answer: `GET ${callback} 302`,
    what: 'of a repeated callback',
    mode: 'dual',
    provoke: async ({ browser }) => {
      const back = await startLogin(browser, '/models?id=7')
      await openCallback(browser, back)
      return openCallback(browser, back)
    }
  },
  { answer: `GET ${callback} 400`, what: 'without parameters', provoke: get(callback) },
  {
    answer: `GET ${callback} 400`,
    what: 'without the login cookie',
    provoke: cameBack(({ browser }) => browser.cookies.clear())
  },
  { answer: `GET ${callback} 400`, what: 'with an error from the provider', provoke: refusedWith('invalid_scope') },
  { answer: `GET ${callback} 403`, provoke: refusedWith('access_denied') },
  { answer: `GET ${callback} 413`, provoke: withBody(callback) },
  {
    answer: `GET ${callback} 500`,
    provoke: cameBack(({ idp }) => {
      idp.settings.accessTokenLength = 16_000
    })
  },
  { answer: `GET ${callback} 502`, provoke: cameBack(({ idp }) => idp.fail('token', faults.html(500))) },
  {
    answer: `GET ${callback} 502`,
    what: 'for a wrong client secret',
    provoke: cameBack(({ idp }) => idp.fail('token', faults.error('invalid_client', 401)))
  },
  { answer: `GET ${callback} 503`, provoke: refusedWith('temporarily_unavailable') },
  {
    answer: `GET ${callback} 503`,
    what: 'when the provider is busy',
    provoke: cameBack(({ idp }) => idp.fail('token', faults.tooManyRequests(60)))
  },
  { answer: `GET ${callback} 504`, provoke: cameBack(({ idp }) => idp.fail('token', faults.reset())) },
  { answer: `GET ${logout} 302`, what: 'with a session', provoke: signedIn(logout) },
  { answer: `GET ${logout} 302`, what: 'without a session', provoke: get(logout) },
  {
    answer: `GET ${logout} 403`,
    provoke: get(logout, { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' })
  },
  { answer: `GET ${logout} 400`, provoke: get(`${logout}?everywhere=no`) },
  {
    answer: `GET ${logout} 503`,
    backChannel: true,
    redisIsAway: true,
    provoke: get(`${logout}?everywhere=true`, { 'sec-fetch-site': 'same-origin' })
  },
  { answer: `GET ${logout} 413`, provoke: withBody(logout) },
  { answer: `POST ${backChannelLogout} 200`, backChannel: true, provoke: sendLogoutToken({ sub: 'user-1' }) },
  { answer: `POST ${backChannelLogout} 400`, backChannel: true, provoke: sendLogoutToken({}) },
  ...providerFailures.map(
    ([status, fault]): Provocation => ({
      answer: `POST ${backChannelLogout} ${status}`,
      backChannel: true,
      provoke: (server, headers) => {
        server.idp.failWhen('jwks', () => fault)
        return sendLogoutToken({ sub: 'user-1' })(server, headers)
      }
    })
  ),
  ...[profile, token].flatMap((path): Provocation[] => [
    { answer: `GET ${path} 200`, what: 'without a refresh', mode: 'dual', provoke: signedIn(path) },
    { answer: `GET ${path} 200`, what: 'after a refresh', mode: 'dual', provoke: signedIn(path, expire) },
    { answer: `GET ${path} 401`, mode: 'dual', provoke: get(path) },
    {
      answer: `GET ${path} 401`,
      what: 'after the provider ended the grant',
      mode: 'dual',
      provoke: signedIn(path, server => {
        expire(server)
        server.idp.endAllGrants()
      })
    },
    { answer: `GET ${path} 403`, mode: 'dual', provoke: get(path, { 'sec-fetch-site': 'same-site' }) },
    {
      answer: `GET ${path} 403`,
      what: 'after the account has lost its right',
      mode: 'dual',
      allow: ['groups=admins'],
      provoke: async (server, headers) => {
        const { settings } = server.idp
        settings.quirks = { idTokenOnRefresh: true }
        settings.idTokenClaims = claims => ({ ...claims, groups: 'admins' })
        await signIn(server.browser)
        settings.idTokenClaims = claims => claims
        expire(server)
        return server.browser.get(path, { headers })
      }
    },
    { answer: `GET ${path} 413`, mode: 'dual', provoke: withBody(path) },
    {
      answer: `GET ${path} 500`,
      mode: 'dual',
      provoke: signedIn(path, server => {
        expire(server)
        server.idp.settings.accessTokenLength = 16_000
      })
    },
    {
      answer: `GET ${path} 503`,
      mode: 'dual',
      provoke: signedIn(path, server => {
        expire(server)
        server.idp.fail('token', faults.status(500))
      })
    }
  ]),
  {
    answer: `GET ${profile} 502`,
    provoke: signedIn(profile, server => {
      expire(server)
      server.idp.fail('userinfo', faults.empty(401))
    })
  },
  {
    answer: `GET ${profile} 503`,
    what: 'when the provider is busy',
    provoke: signedIn(profile, ({ idp }) => idp.fail('userinfo', faults.tooManyRequests(7)))
  },
  {
    answer: `GET ${profile} 504`,
    // The limit also applies to the login before it, which must succeed on a slow machine.
    timeoutSeconds: 8,
    provoke: signedIn(profile, ({ idp }) => idp.fail('userinfo', faults.hang()))
  },
  { answer: `GET ${token} 404`, mode: 'single', provoke: signedIn(token) },
  {
    answer: `GET ${client} 304`,
    provoke: async (server, headers) =>
      get(client, { 'if-none-match': String((await server.browser.get(client)).headers.etag) })(server, headers)
  },
  ...[client, '/healthz', '/readyz'].flatMap((path): Provocation[] => [
    { answer: `GET ${path} 200`, provoke: get(path) },
    { answer: `HEAD ${path} 200`, provoke: head(path) },
    { answer: `GET ${path} 413`, provoke: withBody(path) }
  ]),
  {
    answer: 'GET /readyz 503',
    delaySeconds: 15,
    provoke: (server, headers) => {
      startStopping(server)
      return get('/readyz')(server, headers)
    }
  },
  {
    answer: 'HEAD /readyz 503',
    delaySeconds: 15,
    provoke: server => {
      startStopping(server)
      return head('/readyz')(server)
    }
  }
]

for (const { answer, what = '', provoke, ...options } of provocations) {
  const promise = documented.get(answer)
  const types = Object.keys(promise?.content ?? {})
  for (const accept of types.length > 0 ? types : ['*/*']) {
    test(`${answer} ${what} is answered as documented, for ${accept}`.replace('  ', ' '), async t => {
      const server = await start(t, options)
      const response = await provoke(server, { accept })
      t.is(`${answer.split(' ', 2).join(' ')} ${response.statusCode}`, answer)
      t.deepEqual(broken(promise ?? { description: '' }, response), [])
      if (types.length > 0) t.true(response.headers['content-type']?.startsWith(accept))
    })
  }
}

async function start(t: ExecutionContext, options: Partial<Provocation>): Promise<TestServer> {
  const { mode = 'single', discovery, backChannel = false, redisIsAway = false, allow } = options
  const { timeoutSeconds = 60, delaySeconds = 0 } = options
  const idp = discovery || backChannel ? await createHostileIdp(t) : undefined
  const scopes = ['openid', 'data:read']
  const openid = (backChannel || allow) && { scopes, internalScopes: scopes, publicScopes: ['data:read'] }
  const platform = { timeoutSeconds, backChannelLogout: backChannel, ...(idp && discovered(idp)), ...openid }
  const overrides = { platform, access: { allow }, log: { requests: false }, shutdown: { delaySeconds } }
  const server = await startTestServer(t, { mode, overrides, ...(idp && { idp }) })
  if (!redisIsAway) return server
  const { browser } = server
  await signIn(browser)
  const away = { ...overrides, redisUrl: 'redis://127.0.0.1:9' }
  const replica = await startTestServer(t, { mode, overrides: away, idp: server.idp, clock: server.clock })
  replica.connect(browser)
  return { ...replica, browser }
}

test('the document has the version of the package, and each of its answers is tested', t => {
  t.deepEqual([...documented.keys()].sort(), [...new Set(provocations.map(({ answer }) => answer))].sort())
  t.is(document.info.version, (JSON.parse(readText('package.json')) as { version: string }).version)
})

test('methods and paths that are not documented are answered with the documented 405 and 404', async t => {
  const { MethodNotAllowed, NotFound } = document.components.responses
  const { browser } = await start(t, { mode: 'dual' })
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
